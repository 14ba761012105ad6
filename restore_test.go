package braid_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// reborn is a cluster that begins with a state, on directories below one.
type reborn struct {
	t       *testing.T
	dir     string
	cluster uint64
	members []braid.Member
	nodes   map[braid.MemberID]*braid.Node
	counts  map[braid.MemberID]*counts
}

func newReborn(t *testing.T, members int) *reborn {
	c := &reborn{t: t, dir: t.TempDir(), cluster: 77, nodes: map[braid.MemberID]*braid.Node{}, counts: map[braid.MemberID]*counts{}}
	for i := range members {
		c.members = append(c.members, braid.Member{ID: braid.MemberID(i + 1), PeerURLs: []string{freeURL(t)}})
	}
	t.Cleanup(func() {
		for id := range c.nodes {
			c.stop(id)
		}
	})
	return c
}

func (c *reborn) options(m braid.Member) braid.Options {
	return braid.Options{
		Self: m.ID, Cluster: c.cluster, Dir: filepath.Join(c.dir, m.ID.String()), Members: c.members,
		Listen:    []string{strings.TrimPrefix(m.PeerURLs[0], "http://")},
		Heartbeat: 20 * time.Millisecond, ElectionTimeout: 200 * time.Millisecond, Limits: braid.Limits{SnapshotBytes: 10_000},
		Logger: slog.New(slog.NewTextHandler(testWriter{c.t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
}

func (c *reborn) open(o braid.Options) {
	c.t.Helper()
	sm := newCounts()
	n, err := braid.Open(o, sm)
	require.NoError(c.t, err)
	c.nodes[n.Status().Self], c.counts[n.Status().Self] = n, sm
}

func (c *reborn) stop(id braid.MemberID) {
	require.NoError(c.t, c.nodes[id].Close())
	delete(c.nodes, id)
}

// verify: every member has what the state had and what came after it.
func (c *reborn) verify(want map[string]int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), testTimeout)
	defer cancel()
	for id, n := range c.nodes {
		require.NoError(c.t, n.ReadBarrier(ctx), "member %s", id)
		require.Equal(c.t, want, c.counts[id].all(), "member %s", id)
	}
}

func (l *counts) all() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.applied)
}

// archive writes a state with some commands to a file, and returns what it has.
func archive(t *testing.T) (file string, has map[string]int) {
	sm := newCounts()
	for i := range 5 {
		require.NoError(t, sm.Apply([]braid.Command{{Position: braid.Position(i + 1), Data: fmt.Appendf(nil, "old %d", i)}}))
	}
	view, err := sm.Snapshot()
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, errors.Join(view.WriteTo(t.Context(), &b), view.Close()))
	file = filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.WriteFile(file, b.Bytes(), 0o600))
	return file, sm.all()
}

// TestANewClusterBeginsWithAFile: its members have the state after a restart too, before the first snapshot of the log,
// and so has a member that joins, although no entry of the log leads there.
func TestANewClusterBeginsWithAFile(t *testing.T) {
	t.Parallel()
	for name, protocol := range map[string]braid.Protocol{"raft": braid.Raft{}, "niagara": braid.Niagara{Instances: 2}, "iss": braid.ISS{}, "lcr": braid.LCR{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, want := archive(t)
			c := newReborn(t, 3)
			for _, m := range c.members {
				o := c.options(m)
				o.Protocol = protocol
				require.NoError(t, braid.RestoreFile(o, file))
				require.ErrorAs(t, braid.RestoreFile(o, file), new(*braid.DirError), "it has begun")
			}
			tune := func(m braid.Member) braid.Options {
				o := c.options(m)
				o.Protocol = protocol
				return o
			}
			for _, m := range c.members {
				c.open(tune(m))
			}
			c.verify(want)
			propose := func(text string) {
				_, err := c.nodes[1].Propose(t.Context(), []byte(text))
				require.NoError(t, err)
				want[text]++
			}
			propose("new")
			for _, m := range c.members {
				c.stop(m.ID)
			}
			for _, m := range c.members {
				c.open(tune(m))
			}
			c.verify(want)
			joiner := braid.Member{ID: 9, PeerURLs: []string{freeURL(t)}}
			require.NoError(t, c.nodes[1].ChangeMembers(t.Context(), braid.Change{Kind: braid.AddVoter, Member: joiner}))
			o := tune(joiner)
			o.Self, o.Cluster, o.Join, o.Members = 0, 0, true, []braid.Member{{PeerURLs: c.members[0].PeerURLs}}
			c.open(o)
			propose("newer")
			c.verify(want)
			c.stop(9)
			c.open(o)
			c.verify(want)
		})
	}
}

// TestMembersOfTwoFilesDoNotConnect: one of them began with another state, and the cluster continues without it.
func TestMembersOfTwoFilesDoNotConnect(t *testing.T) {
	t.Parallel()
	file, want := archive(t)
	other := filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.WriteFile(other, []byte("{}"), 0o600))
	c := newReborn(t, 3)
	for i, m := range c.members {
		require.NoError(t, braid.RestoreFile(c.options(m), []string{file, file, other}[i]))
		c.open(c.options(m))
	}
	_, err := c.nodes[1].Propose(t.Context(), []byte("new"))
	require.NoError(t, err)
	want["new"]++
	odd := c.nodes[3]
	delete(c.nodes, 3)
	c.verify(want)
	require.Zero(t, odd.Status().Applied)
	require.NoError(t, odd.Close())
}

// TestRecoverAlone: of three members one is left. It has all that was acknowledged with its help, and others join the
// cluster that it begins.
func TestRecoverAlone(t *testing.T) {
	t.Parallel()
	old := newReborn(t, 3)
	for _, m := range old.members {
		old.open(old.options(m))
	}
	want := map[string]int{}
	for i := range 20 {
		text := fmt.Sprint("command ", i)
		_, err := old.nodes[1].Propose(t.Context(), []byte(text))
		require.NoError(t, err)
		want[text]++
	}
	old.verify(want)
	left := old.options(old.members[1]).Dir
	for _, m := range old.members {
		old.stop(m.ID)
	}
	c := newReborn(t, 1)
	o := c.options(c.members[0])
	_, err := braid.RecoverAlone(t.Context(), left, o, struct{ braid.DurableStateMachine }{})
	require.ErrorAs(t, err, new(*braid.OptionError))
	_, err = braid.RecoverAlone(t.Context(), left, o, newCounts())
	require.ErrorContains(t, err, "needs another id")
	c.cluster++
	o = c.options(c.members[0])
	to, err := braid.RecoverAlone(t.Context(), left, o, newCounts())
	require.NoError(t, err)
	require.NotZero(t, to)
	c.open(o)
	c.verify(want)
	_, err = braid.RecoverAlone(t.Context(), left, o, newCounts())
	require.Error(t, err, "it has begun")
	joiner := braid.Member{ID: 9, PeerURLs: []string{freeURL(t)}}
	require.NoError(t, c.nodes[1].ChangeMembers(t.Context(), braid.Change{Kind: braid.AddVoter, Member: joiner}))
	o = c.options(joiner)
	o.Join = true
	c.open(o)
	c.verify(want)
}
