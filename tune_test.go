package braid_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// TestWhatCannotBeTuned: a refusal names the setting, and nothing happened. A retry gets the same answer.
func TestWhatCannotBeTuned(t *testing.T) {
	t.Parallel()
	n := sole(t, []braid.Member{{ID: 1}})
	require.NoError(t, n.ReadBarrier(t.Context()))
	before := n.Status().Profile
	require.EqualValues(t, 1, before.Version)
	require.Equal(t, "100ms", before.Settings["election-timeout"])
	require.Equal(t, "1", before.Settings["instances"])
	for name, text := range map[string]string{
		"order": "niagara", "quorums": "4/2", "color": "blue", "election-timeout": "20ms", "lease-reads": "perhaps",
		"code-k": "2", "placement": "rs", "heartbeat-interval": "50ms", "instances": "65", "leaders": "one\ntwo",
	} {
		for range 2 {
			var no *braid.TuneError
			_, err := n.Tune(t.Context(), braid.Tuning{Set: map[string]string{name: text}})
			require.ErrorAs(t, err, &no, name)
			require.ErrorIs(t, err, braid.ErrNotTunable, name)
			require.False(t, no.Retry, name)
			if name != "heartbeat-interval" { // three of them are more than the election timeout, which is named
				require.Equal(t, name, no.Name)
			}
			require.Contains(t, err.Error(), no.Name)
		}
	}
	_, err := n.Tune(t.Context(), braid.Tuning{Set: map[string]string{"election-timeout": "-5s"}})
	require.EqualError(t, err, "braid: tune: election-timeout: -5s: a duration is not negative")
	for _, version := range []uint64{2, 7} {
		_, err := n.Tune(t.Context(), braid.Tuning{Set: map[string]string{"lease-reads": "true"}, Version: version})
		require.ErrorIs(t, err, braid.ErrProfileReplaced)
	}
	require.Equal(t, before, n.Status().Profile)
	changed := n.Status().Profile
	changed.Settings["lease-reads"] = "perhaps"
	require.Equal(t, before, n.Status().Profile, "each status is the caller's own")
	fixed := 0
	for _, s := range n.Tunables() {
		require.NotEmpty(t, s.Waits, s.Name)
		if s.Fixed {
			fixed++
			continue
		}
		require.Equal(t, before.Settings[s.Name], s.Value, s.Name)
	}
	require.Equal(t, 1, fixed, "the order")
	require.Len(t, before.Settings, len(n.Tunables())-1)
}

// TestSettingsAreTunedUnderLoad: each kind of setting changes while clients write. Members that were away, and one that
// joins, learn the profile from the log, whatever their flags say.
func TestSettingsAreTunedUnderLoad(t *testing.T) {
	t.Parallel()
	var logs logged
	flags := func(o *braid.Options) {
		o.Logger = slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelWarn}))
		o.Limits.SnapshotBytes = 16 << 10
	}
	c := newCluster(t, 3, flags)
	c.leader()
	loading, end := context.WithCancel(t.Context())
	var load sync.WaitGroup
	var acked []string
	load.Go(func() {
		for i := 0; loading.Err() == nil; i++ {
			acked = append(acked, c.fill("load "+string(rune('a'+i)), 5)...)
		}
	})
	version := uint64(1)
	for _, set := range []map[string]string{
		{"heartbeat-interval": "40"}, {"election-timeout": "600ms"}, {"lease-reads": "true"},
		{"placement": "code", "code-k": "2"}, {"extra-whole": "1", "trim-whole": "true"}, {"placement": "copy"},
		{"election-timeout": "", "lease-reads": "", "heartbeat-interval": "60ms"},
	} {
		p, err := c.nodes[braid.MemberID(version%3+1)].Tune(c.ctx(), braid.Tuning{Set: set, Version: version})
		require.NoError(t, err, "%v", set)
		version++
		require.Equal(t, version, p.Version)
		again, err := c.any().Tune(c.ctx(), braid.Tuning{Set: set, Version: version - 1})
		require.NoError(t, err, "a repetition after a lost answer")
		require.Equal(t, version, again.Version)
	}
	end()
	load.Wait()
	leader := c.leader()
	c.verify(acked)
	p := c.any().Status().Profile
	require.Equal(t, "1s", p.Settings["election-timeout"])
	require.Equal(t, "0", p.Settings["code-k"], "placement copy has no use for it")
	require.Len(t, p.Earlier, 7)
	require.Equal(t, map[string]string{"placement": "code", "code-k": "2", "extra-whole": "1", "trim-whole": "true"},
		p.Earlier[5].Settings)

	away := leader%3 + 1
	c.stop(away)
	_, err := c.nodes[leader].Tune(c.ctx(), braid.Tuning{Set: map[string]string{"election-timeout": "700ms"}})
	require.NoError(t, err)
	c.tune = func(o *braid.Options) {
		flags(o)
		o.ElectionTimeout, o.LeaseReads, o.Protocol = time.Minute/2, true, braid.CRaft{}
	}
	c.start(c.members[away-1], false)
	joiner := braid.Member{ID: 4, PeerURLs: []string{freeURL(t)}}
	c.dirs[4] = t.TempDir()
	changed(t, c.nodes[leader], braid.Change{Kind: braid.AddVoter, Member: joiner})
	c.start(joiner, true)
	for _, id := range []braid.MemberID{away, 4} {
		require.Eventually(t, func() bool { return c.nodes[id].Status().Profile.Version == version+1 }, testTimeout,
			time.Millisecond, "member %s learns", id)
		st := c.nodes[id].Status()
		require.Equal(t, "700ms", st.Profile.Settings["election-timeout"])
		require.Equal(t, "raft copy", st.Protocol+" "+st.Placement)
	}
	require.Contains(t, logs.String(), `setting=election-timeout here=30s used=`)
	require.Contains(t, logs.String(), `setting=placement here=code used=co`)
	c.verify(c.fill("x", 3))
}

// TestTwoTunesAtOnce: with a version one of two wins, and without both take effect.
func TestTwoTunesAtOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	c.leader()
	both := func(version uint64, lease, beat string) (errs [2]error) {
		var all sync.WaitGroup
		for i, set := range []map[string]string{{"lease-reads": lease}, {"heartbeat-interval": beat}} {
			all.Go(func() {
				_, errs[i] = c.nodes[braid.MemberID(i+1)].Tune(c.ctx(), braid.Tuning{Set: set, Version: version})
			})
		}
		all.Wait()
		return errs
	}
	require.Equal(t, [2]error{}, both(0, "true", "20"))
	require.NoError(t, c.any().ReadBarrier(c.ctx()))
	p := c.any().Status().Profile
	require.EqualValues(t, 3, p.Version)
	require.Equal(t, "true 20ms", p.Settings["lease-reads"]+" "+p.Settings["heartbeat-interval"])
	errs := both(3, "false", "30")
	lost := 0
	for _, err := range errs {
		if err != nil {
			require.ErrorIs(t, err, braid.ErrProfileReplaced)
			lost++
		}
	}
	require.Equal(t, 1, lost)
	require.NoError(t, c.any().ReadBarrier(c.ctx()))
	require.EqualValues(t, 4, c.any().Status().Profile.Version)
}

// TestInstancesAreTuned: the number of instances is no part of the profile, but is tuned as one of its settings. A log
// that began with one instance gets several, too.
func TestInstancesAreTuned(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*braid.Options){"merged": woven(2), "one": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			instancesAreTuned(newCluster(t, 3, begin), name == "one")
		})
	}
}

func instancesAreTuned(c *cluster, alone bool) {
	t := c.t
	c.leader()
	p, err := c.nodes[2].Tune(c.ctx(), braid.Tuning{Set: map[string]string{"instances": "3", "leaders": "spread"}})
	require.NoError(t, err)
	require.EqualValues(t, 2, p.Version)
	require.Equal(t, "3 spread", p.Settings["instances"]+" "+p.Settings["leaders"])
	c.verify(c.fill("x", 5))
	require.Eventually(t, func() bool {
		leaders := map[braid.MemberID]bool{}
		for _, in := range c.any().Status().Instances {
			leaders[in.Leader] = true
		}
		return len(leaders) == 3
	}, testTimeout, time.Millisecond, "the leaders are spread")
	p, err = c.nodes[1].Tune(c.ctx(), braid.Tuning{Set: map[string]string{"instances": "1"}, Version: 2})
	require.NoError(t, err)
	require.Equal(t, "1", p.Settings["instances"])
	require.Equal(t, "1", c.nodes[1].Status().Profile.Settings["instances"], "the version may be the same as before")
	if alone { // one leader has no place among others
		require.EqualValues(t, 3, p.Version)
		require.Empty(t, p.Settings["leaders"])
	} else {
		require.EqualValues(t, 2, p.Version)
	}
}

// logged is a log that several goroutines write.
type logged struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// TestOtherProtocolsAreTuned: those of Paxos, too, except for those whose members never change.
func TestOtherProtocolsAreTuned(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"multi-paxos", "iss", "epaxos"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3, func(o *braid.Options) { o.Protocol = braid.Named(name) })
			set := map[string]string{"relays": "1", "election-timeout": "400", "heartbeat-interval": "20"}
			if name == "epaxos" {
				_, err := c.any().Tune(c.ctx(), braid.Tuning{Set: map[string]string{"heartbeat-interval": "20"}})
				require.ErrorIs(t, err, braid.ErrNotTunable)
				p, err := c.any().Tune(c.ctx(), braid.Tuning{})
				require.NoError(t, err)
				require.Zero(t, p.Version)
				return
			}
			c.led()
			p, err := c.nodes[2].Tune(c.ctx(), braid.Tuning{Set: set, Version: 1})
			require.NoError(t, err)
			require.EqualValues(t, 2, p.Version)
			require.Equal(t, "1 400ms 20ms", p.Settings["relays"]+" "+p.Settings["election-timeout"]+" "+
				p.Settings["heartbeat-interval"])
			c.verify(c.fill("x", 5))
			c.restart()
			c.led()
			c.verify(c.fill("y", 2))
			require.EqualValues(t, 2, c.any().Status().Profile.Version)
		})
	}
}
