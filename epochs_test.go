package braid_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
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

// A joiner with other epochs would compute other epochs from the same log. The others refuse it, and both sides log
// which setting differs. With those of the log it joins, also after a change of the profile.
func TestAJoinerHasTheEpochsOfTheLog(t *testing.T) {
	t.Parallel()
	set, logs := braid.EpochSettings{MinSlots: 16, MaxSlots: 16, EqualShares: true, Policy: "backoff"}, new(logged)
	c := newCluster(t, 2, func(o *braid.Options) {
		o.Protocol = braid.ISS{Epochs: set}
		o.Logger = slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	c.led()
	_, err := c.any().Tune(c.ctx(), braid.Tuning{Set: map[string]string{"skip-wait": "1ms"}})
	require.NoError(t, err)
	acked := c.fill("x", 20)
	joiner := braid.Member{ID: 3, PeerURLs: []string{freeURL(t)}}
	changed(t, c.any(), braid.Change{Kind: braid.AddVoter, Member: joiner})
	c.dirs[3] = t.TempDir()
	begun := set
	set.MaxSlots = 32
	c.start(joiner, true)
	require.Eventually(t, func() bool {
		return strings.Contains(logs.String(), `differ (epochs is \"slots 16-32, shares equal,`) &&
			strings.Contains(logs.String(), `differ (epochs is \"slots 16-16, shares equal,`)
	}, 20*time.Second, 10*time.Millisecond)
	require.Zero(t, c.nodes[3].Status().Applied)
	c.stop(3)

	set, c.dirs[3] = begun, t.TempDir()
	c.start(joiner, true)
	c.verify(append(acked, c.fill("y", 5)...))
}
