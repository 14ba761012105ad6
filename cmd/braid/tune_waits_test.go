package main

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/status"
)

func TestWhatATuneWaitsFor(t *testing.T) {
	led, unled := status.Instance{Instance: 1, Leader: "1"}, status.Instance{Instance: 2}
	member := func(name string, profile uint64, in ...status.Instance) status.Member {
		return status.Member{Name: name, Profile: profile, Instances: in}
	}
	fenced := led
	fenced.Lanes = &status.Lanes{Fence: true}
	away := status.Member{Error: "refused"}
	for _, c := range []struct {
		want      string
		instances int
		members   []status.Member
	}{
		{"a member that answers", 0, []status.Member{away, away}},
		{"a leader", 0, []status.Member{member("m1", 1, unled), away}},
		{"the leader", 0, []status.Member{member("m1", 1, led), member("m2", 1, led)}},
		{"the leader; 1 of 2 members do not answer", 0, []status.Member{member("m1", 1, led), away}},
		{"a fence: members replicate first what lanes have accepted", 0,
			[]status.Member{member("m1", 1, led), member("m2", 1, fenced)}},
		{"m1 and m3 to apply profile 3", 4,
			[]status.Member{member("m1", 2, led), member("m2", 3, led), member("m3", 1, led)}},
		{"m2 to have 2 instances", 2, []status.Member{member("m1", 3, led, unled), member("m2", 3, led)}},
		{"a leader of instance 2", 2, []status.Member{member("m1", 3, led, unled), member("m2", 3, led, led)}},
	} {
		require.Equal(t, c.want, changeWaits(c.members, c.instances))
	}
}

// TestAReasonToWaitIsSaidOnce: until it is another one, and not after the end.
func TestAReasonToWaitIsSaidOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	reasons := []string{"waits for a leader", "waits for a leader", "seals", "the leader"}
	every := make(chan time.Time, 4)
	for range reasons {
		every <- time.Time{}
	}
	var out bytes.Buffer
	tellWaits(ctx, every, &out, "braid tune", func() (why string) {
		why, reasons = reasons[0], reasons[1:]
		if len(reasons) == 0 {
			cancel()
		}
		return why
	})
	require.Equal(t, "braid tune: waits for a leader\nbraid tune: seals\n", out.String())
}
