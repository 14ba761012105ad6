package braid_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol"
)

// keyedCluster is three members whose groups have a state machine each.
type keyedCluster struct {
	t       *testing.T
	members []braid.Member
	dirs    [3]string
	nodes   [3]*braid.Node
	groups  [3][]*counts
	// protocol and stealing are options.
	protocol, stealing string
}

func newKeyedCluster(t *testing.T) *keyedCluster { return newGroupedCluster(t, "multi-raft", "") }

func newGroupedCluster(t *testing.T, protocol, stealing string, zones ...string) *keyedCluster {
	c := &keyedCluster{t: t, protocol: protocol, stealing: stealing}
	for i := range c.dirs {
		c.members = append(c.members, braid.Member{ID: braid.MemberID(i + 1), PeerURLs: []string{freeURL(t)}})
		c.dirs[i] = t.TempDir()
	}
	for i, zone := range zones {
		c.members[i].Zone = zone
	}
	for i := range c.dirs {
		c.start(i)
	}
	t.Cleanup(func() {
		for _, n := range c.nodes {
			if n != nil {
				n.Close()
			}
		}
	})
	return c
}

// settings are the cluster's, with the stealing that is wanted.
func (c *keyedCluster) options(i int) braid.Options {
	protocol := braid.Named(c.protocol, "instances=3")
	if c.stealing != "" {
		protocol = braid.With(protocol, "stealing="+c.stealing)
	}
	return braid.Options{
		Self: c.members[i].ID, Cluster: 42, Dir: c.dirs[i], Members: slices.Clone(c.members), Protocol: protocol,
		Listen: []string{strings.TrimPrefix(c.members[i].PeerURLs[0], "http://")}, Limits: braid.Limits{SnapshotBytes: 20_000, KeepLogBytes: 1},
		Heartbeat: 50 * time.Millisecond, ElectionTimeout: 500 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(testWriter{c.t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
}

func (c *keyedCluster) start(i int) {
	testsize.Long(c.t)
	c.t.Helper()
	c.groups[i] = nil
	sm, err := braid.NewGroups(3, func(group int) braid.StateMachine {
		require.Len(c.t, c.groups[i], group)
		c.groups[i] = append(c.groups[i], newCounts())
		return c.groups[i][group]
	})
	require.NoError(c.t, err)
	c.nodes[i], err = braid.Open(c.options(i), sm)
	require.NoError(c.t, err)
}

// TestNoGroups: Options.Groups of a protocol with one order is 0.
func TestNoGroups(t *testing.T) {
	o := braid.Options{}
	require.Zero(t, o.Groups())
	_, ok := braid.GroupOf([]uint64{1}, o.Groups())
	require.False(t, ok)
	_, err := braid.NewGroups(o.Groups(), func(int) braid.StateMachine { return newCounts() })
	require.ErrorAs(t, err, new(*braid.GroupError))
	ordered, more, err := braid.FurthestFirst(nil)
	require.NoError(t, err)
	require.Empty(t, append(ordered, more...))
}

// stop stops a member, and waits until the others lead all groups.
func (c *keyedCluster) stop(i int) {
	c.t.Helper()
	require.NoError(c.t, c.nodes[i].Close())
	c.nodes[i] = nil
}

func of(key uint64) braid.ProposeOptions { return braid.ProposeOptions{Keys: []uint64{key}} }

// propose proposes commands with the keys from … to−1 at all members that run, and repeats what failed without
// having taken effect. A member that installs a snapshot meanwhile knows only that the command took effect.
func (c *keyedCluster) propose(from, to uint64) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	var all sync.WaitGroup
	errs := make(chan error, to-from)
	for key := from; key < to; key++ {
		n := c.nodes[key%3]
		if n == nil {
			n = c.nodes[(key+1)%3]
		}
		all.Go(func() {
			for {
				_, err := n.ProposeWith(ctx, fmt.Appendf(nil, "%d %0100d", key, 0), nil, of(key))
				if errors.Is(err, braid.ErrResultUnknown) {
					err = nil
				}
				if !errors.Is(err, braid.ErrNoLeader) || ctx.Err() != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		require.NoError(c.t, err)
	}
}

// require checks that a member has applied all commands up to a key, each once, in the group of its key.
func (c *keyedCluster) require(member int, to uint64) {
	c.t.Helper()
	require.NoError(c.t, c.nodes[member].ReadBarrier(c.t.Context()))
	for key := range to {
		for group, sm := range c.groups[member] {
			want := 0
			if at, ok := braid.GroupOf([]uint64{key}, 3); ok && at == group {
				want = 1
			}
			require.Equal(c.t, want, sm.count(fmt.Sprintf("%d %0100d", key, 0)), "member %d, group %d, key %d", member+1, group, key)
		}
	}
}

// Each group has a leader on another member, commands go to the group of their key, and a member
// that was away for longer than the logs, or that starts again, has all of them.
func TestGroupsOfKeys(t *testing.T) { testGroupsOfKeys(t, newKeyedCluster(t)) }

// The same with groups of multi-Paxos that move to their users: here all members use all of them.
func TestGroupsThatMove(t *testing.T) {
	testGroupsOfKeys(t, newGroupedCluster(t, "wpaxos", "consecutive:4"))
}

// leaders are the leaders of all groups, as a member knows them.
func (c *keyedCluster) leaders(member int) (ids []braid.MemberID) {
	s := c.nodes[member].Status()
	for i := range s.Instances {
		ids = append(ids, s.Instances[i].Leader)
	}
	return ids
}

// ask proposes a command at a member, and repeats it while there is no leader.
func (c *keyedCluster) ask(member int, key uint64) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), testTimeout)
	defer cancel()
	for {
		_, err := c.nodes[member].ProposeWith(ctx, fmt.Appendf(nil, "%d %0100d", key, 0), nil, of(key))
		if !errors.Is(err, braid.ErrNoLeader) || ctx.Err() != nil {
			require.NoError(c.t, err)
			return
		}
	}
}

// Groups move to a zone whose members use them in turns. To move to one of these members alone, they would have to be
// used by it several times in a row.
func TestGroupsMoveToAZone(t *testing.T) {
	c := newGroupedCluster(t, "wpaxos", "consecutive:4", "east", "east", "west")
	in := func(zone string) func() bool {
		return func() bool {
			return !slices.ContainsFunc(c.leaders(0), func(id braid.MemberID) bool {
				return id == 0 || c.members[id-1].Zone != zone
			})
		}
	}
	key := uint64(0)
	for _, use := range []struct {
		zone    string
		members []int
	}{{"west", []int{2}}, {"east", []int{0, 1}}} {
		require.Eventually(t, func() bool {
			for group := range uint64(3) {
				for range 4 {
					for _, member := range use.members {
						for at := -1; at != int(group); key++ {
							at, _ = braid.GroupOf([]uint64{key}, 3)
						}
						c.ask(member, key-1)
					}
				}
			}
			return in(use.zone)()
		}, testTimeout, 10*time.Millisecond, "%s uses all groups: %v", use.zone, c.leaders(0))
	}
}

// Groups begin on all members. Then one member alone asks, and gets all of them. When it stops, the others take them.
func TestGroupsAreStolen(t *testing.T) {
	c := newGroupedCluster(t, "wpaxos", "majority:8")
	owns := func(member int) func() bool {
		return func() bool {
			ids := c.leaders(member)
			return !slices.ContainsFunc(ids, func(id braid.MemberID) bool { return id != c.members[member].ID })
		}
	}
	from := uint64(0)
	for _, member := range []int{1, 2} {
		require.Eventually(t, func() bool {
			for end := from + 30; from < end; from++ {
				c.ask(member, from)
			}
			return owns(member)()
		}, testTimeout, 10*time.Millisecond, "member %d asks alone", member+1)
	}
	c.stop(2)
	for end := from + 30; from < end; from++ {
		c.ask(0, from)
	}
	require.Eventually(t, func() bool { return !slices.Contains(c.leaders(0), c.members[2].ID) }, testTimeout, 10*time.Millisecond)
	c.require(0, from)
	c.require(1, from)
}

func testGroupsOfKeys(t *testing.T, c *keyedCluster) {
	require.Eventually(t, func() bool {
		leaders := c.leaders(0)
		slices.Sort(leaders)
		return slices.Equal(leaders, []braid.MemberID{1, 2, 3})
	}, testTimeout, 10*time.Millisecond, "each member leads a group: %v", c.leaders(0))
	c.propose(0, 100)
	for i := range c.nodes {
		c.require(i, 100)
	}
	c.stop(2)
	c.propose(100, 1000)
	c.start(2)
	c.propose(1000, 1100)
	for i := range c.nodes {
		c.require(i, 1100)
	}
	for i := range c.nodes { // all at once
		c.stop(i)
	}
	for i := range c.nodes {
		c.start(i)
	}
	c.propose(1100, 1130)
	for i := range c.nodes {
		c.require(i, 1130)
	}
}

func TestGroupsRefuseWhatHasNoGroup(t *testing.T) {
	c := newKeyedCluster(t)
	ctx, n := t.Context(), c.nodes[0]
	var refused *braid.GroupError
	_, err := n.Propose(ctx, []byte("x"))
	require.ErrorAs(t, err, &refused)
	_, err = n.ProposeWith(ctx, []byte("x"), nil, braid.ProposeOptions{Keys: []uint64{1, 2}})
	require.ErrorAs(t, err, &refused)
	_, err = n.ProposeWith(ctx, []byte("x"), []byte("body"), of(1))
	require.ErrorAs(t, err, &refused)
	tokens := of(1)
	tokens.After = []braid.Token{{Session: protocol.NewSession(1, protocol.LogID{}, 1, false), Seq: 1}}
	_, err = n.ProposeWith(ctx, []byte("x"), nil, tokens)
	require.ErrorAs(t, err, &refused)
	require.ErrorAs(t, n.Client().ProposeAsync([]byte("x"), nil, nil), &refused)
	var no *braid.RefusedError
	require.ErrorAs(t, n.Reshape(ctx, 2), &no, "the number of groups never changes")

	o := c.options(0)
	o.Dir, o.Listen = t.TempDir(), []string{strings.TrimPrefix(freeURL(t), "http://")}
	_, err = braid.Open(o, newCounts())
	require.ErrorAs(t, err, &refused)
	o.Members, o.Join, o.Protocol = nil, true, braid.Named(c.protocol)
	var wrong *braid.OptionError
	_, err = braid.Open(o, newCounts())
	require.ErrorAs(t, err, &wrong)
}

// A directory of groups is not opened in another order, nor the other way round.
func TestGroupsKeepTheirOrder(t *testing.T) {
	c := newKeyedCluster(t)
	c.propose(0, 1)
	c.stop(0)
	o := c.options(0)
	o.Protocol = braid.Niagara{}
	var refused *braid.LogKindError
	_, err := braid.Open(o, newCounts())
	require.ErrorAs(t, err, &refused)
	c.start(0)
	c.propose(1, 10)
}
