package braid_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// Settings of epochs are only taken by a protocol that has epochs, and only if they are possible.
func TestEpochsThatMakeNoSense(t *testing.T) {
	epochs := func(text string) braid.Protocol { return braid.Named("iss", "epochs="+text) }
	members := []braid.Member{{ID: 1, PeerURLs: []string{"http://127.0.0.1:1"}}}
	for name, o := range map[string]braid.Options{
		"epochs of raft":     {Protocol: braid.Named("raft", "epochs=slots 64-1024, shares by load, policy simple, bans 8-256")},
		"no skips of raft":   {Protocol: braid.Named("raft", "no-skip=true")},
		"a wait of raft":     {Protocol: braid.Named("raft", "skip-wait=1s")},
		"a negative wait":    {Protocol: braid.Named("iss", "skip-wait=-1s")},
		"no power of two":    {Protocol: epochs("slots 48-1024, shares by load, policy simple, bans 8-256")},
		"bounds in disorder": {Protocol: epochs("slots 64-32, shares by load, policy simple, bans 8-256")},
		"an unknown policy":  {Protocol: epochs("slots 64-1024, shares by load, policy all, bans 8-256")},
		"bans in disorder":   {Protocol: epochs("slots 64-1024, shares by load, policy simple, bans 9-8")},
	} {
		o.Self, o.Cluster, o.Dir, o.Members = 1, 1, t.TempDir(), members
		var wrong *braid.OptionError
		if n, err := braid.Open(o, newCounts()); !errors.As(err, &wrong) {
			if err == nil {
				_ = n.Close()
			}
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// A member that came back with other settings would compute other epochs from its log. It does not start. With those
// that it had it continues, with another skip-wait too, because the log has that.
func TestAMemberKeepsTheSettingsOfItsEpochs(t *testing.T) {
	t.Parallel()
	set, wait := braid.EpochSettings{MinSlots: 16, MaxSlots: 16, EqualShares: true, Policy: "backoff"}, 2*time.Millisecond
	c := newCluster(t, 3, func(o *braid.Options) {
		o.Protocol = braid.With(braid.ISS{Epochs: set}, fmt.Sprint("skip-wait=", wait), "no-skip=true")
	})
	c.led()
	acked := c.fill("x", 100) // several epochs
	c.stop(3)
	begun := set
	for _, other := range []braid.EpochSettings{{}, {MinSlots: 16, MaxSlots: 32, EqualShares: true, Policy: "backoff"}, {MinSlots: 16, MaxSlots: 16, Policy: "backoff"}} {
		set = other
		var refused *braid.DirError
		err := c.open(c.members[2], false)
		require.ErrorAs(t, err, &refused)
		require.ErrorContains(t, err, "was begun with epochs of")
	}
	set, wait = begun, 0
	c.start(c.members[2], false)
	c.verify(append(acked, c.fill("y", 20)...))
}
