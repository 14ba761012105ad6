package braid_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/vfs"
)

// trio is three members of a protocol on disks in memory.
type trio struct {
	t        *testing.T
	protocol string
	members  []braid.Member
	disks    []vfs.FS
	nodes    []*braid.Node
	counts   []*counts // of a member's groups, one after the other
	tune     func(*braid.Options)
}

func newTrio(t *testing.T, protocol string) *trio {
	c := &trio{t: t, protocol: protocol}
	for i := range 3 {
		c.members = append(c.members, braid.Member{ID: braid.MemberID(i + 1), PeerURLs: []string{freeURL(t)}})
		c.disks = append(c.disks, vfs.NewMem())
	}
	t.Cleanup(c.stop)
	return c
}

func (c *trio) options(i int, protocol string) braid.Options {
	o := braid.Options{
		Self: c.members[i].ID, Cluster: 42, Dir: "d", FS: c.disks[i], Members: slices.Clone(c.members), Protocol: braid.Named(protocol),
		Listen:    []string{strings.TrimPrefix(c.members[i].PeerURLs[0], "http://")},
		Heartbeat: 20 * time.Millisecond, ElectionTimeout: 200 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	if c.tune != nil {
		c.tune(&o)
	}
	return o
}

func (c *trio) open(i int, protocol string) error {
	o := c.options(i, protocol)
	machine := func(int) braid.StateMachine {
		c.counts = append(c.counts, newCounts())
		return c.counts[len(c.counts)-1]
	}
	var sm braid.StateMachine
	if n := o.Groups(); n > 0 {
		var err error
		sm, err = braid.NewGroups(n, machine)
		require.NoError(c.t, err)
	} else {
		sm = machine(0)
	}
	n, err := braid.Open(o, sm)
	if err == nil {
		c.nodes = append(c.nodes, n)
	}
	return err
}

func (c *trio) start(protocol string) {
	c.t.Helper()
	for i := range c.members {
		require.NoError(c.t, c.open(i, protocol), protocol)
	}
}

func (c *trio) stop() {
	var wg sync.WaitGroup
	for _, n := range c.nodes {
		wg.Go(func() { _ = n.Close() })
	}
	wg.Wait()
	c.nodes, c.counts = nil, nil
}

// fill has commands take effect through all members, with a body each where the protocol takes one.
func (c *trio) fill(name string, count int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), testTimeout)
	defer cancel()
	for i := range count {
		for _, n := range c.nodes {
			command := []byte(fmt.Sprintf("%s %d %s", name, i, strings.Repeat("x", 50)))
			o := braid.ProposeOptions{Keys: []uint64{uint64(i)}}
			_, err := n.ProposeWith(ctx, command, nil, o)
			for errors.Is(err, braid.ErrMaybeCommitted) && ctx.Err() == nil { // a slow machine: it counts once
				_, err = n.ProposeWith(ctx, command, nil, o)
			}
			require.NoError(c.t, err)
		}
	}
}

// applied reports whether every member has applied so many different commands.
func (c *trio) applied(count int) bool {
	total := 0
	for _, s := range c.counts {
		s.mu.Lock()
		total += len(s.applied)
		s.mu.Unlock()
	}
	return total == 3*count
}

// before makes a directory what an earlier version leaves: it does not tell what its log is.
func before(t *testing.T, fs vfs.FS) {
	t.Helper()
	name := filepath.Join("d", "member.json")
	var content map[string]any
	decoder := json.NewDecoder(bytes.NewReader(readFile(t, fs, name)))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&content))
	require.Contains(t, content, "log_kind")
	delete(content, "log_kind")
	b, err := json.Marshal(content)
	require.NoError(t, err)
	f, err := fs.Create(name)
	require.NoError(t, err)
	_, err = f.Write(b)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func readFile(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	require.NoError(t, err)
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return b
}

// content is a digest of every file below a directory.
func content(t *testing.T, fs vfs.FS, dir string) map[string][sha256.Size]byte {
	t.Helper()
	all := map[string][sha256.Size]byte{}
	names, err := fs.List(dir)
	require.NoError(t, err)
	for _, name := range names {
		path := filepath.Join(dir, name)
		info, err := fs.Stat(path)
		require.NoError(t, err)
		if info.IsDir() {
			maps.Copy(all, content(t, fs, path))
			continue
		}
		f, err := fs.Open(path)
		require.NoError(t, err)
		sum := sha256.New()
		_, err = io.Copy(sum, f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		all[path] = [sha256.Size]byte(sum.Sum(nil))
	}
	return all
}

// sameLog reports whether a log that two protocols may have begun is the same, as the rest is in its profile.
func sameLog(a, b *registry.Protocol) bool {
	keyed := a.Keyed("") || b.Keyed("")
	return a.Core == b.Core && (a == b || !keyed && a.Quorums == nil && b.Quorums == nil)
}

// A directory opens only with a protocol that makes its kind of log, or whose log has the same core and a profile.
// Every other one is refused by name and changes nothing, whether the directory tells what it holds or, as those of
// earlier versions, has to be asked. Every pair is tried with what real members wrote, with snapshots and without.
func TestNoProtocolOpensTheLogOfAnother(t *testing.T) {
	t.Parallel()
	for _, has := range registry.All() {
		for _, snapshots := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s snapshots=%t", has.Name, snapshots), func(t *testing.T) {
				t.Parallel()
				c := newTrio(t, has.Name)
				c.tune = func(o *braid.Options) { o.Limits.SnapshotBytes = 1 << 20 }
				if snapshots {
					c.tune = func(o *braid.Options) { o.Limits.SnapshotBytes, o.Limits.KeepLogBytes = 3_000, 1 }
				}
				c.start(has.Name)
				c.fill("a", 16)
				require.Eventually(t, func() bool { return c.applied(16) }, testTimeout, time.Millisecond)
				c.stop()
				for i := range c.disks {
					c.refuses(i, has, false)
					before(t, c.disks[i])
					c.refuses(i, has, true)
				}
				c.start(has.Name)
				c.fill("b", 1)
			})
		}
	}
}

// refuses tries to open a member's directory with every protocol. guessed: the directory does not tell what it holds.
// Then quorums that are no majorities cannot be told from what is there.
func (c *trio) refuses(i int, has *registry.Protocol, guessed bool) {
	c.t.Helper()
	was := content(c.t, c.disks[i], "d")
	for _, wish := range registry.All() {
		if !guessed && sameLog(has, wish) || guessed && has.Core == wish.Core && has.Orders[0] == wish.Orders[0] {
			require.NoError(c.t, c.options(i, wish.Name).CheckDir(), "%s as %s", has.Name, wish.Name)
			continue
		}
		err := c.open(i, wish.Name)
		var refused *braid.LogKindError
		require.ErrorAs(c.t, err, &refused, "member %d: %s as %s", i+1, has.Name, wish.Name)
		require.Equal(c.t, wish.Told(), refused.Wanted.Core)
		require.ErrorContains(c.t, err, "it holds a log of "+has.Told())
		require.ErrorAs(c.t, c.options(i, wish.Name).CheckDir(), &refused)
		require.Equal(c.t, was, content(c.t, c.disks[i], "d"), "%s as %s", has.Name, wish.Name)
	}
}

// Where the bytes of values lie, how many instances there are and which member should lead are no part of what a log
// is. A stopped cluster may be started with others, there and back, and has all that was acknowledged.
func TestWhatOfALogMayChange(t *testing.T) {
	t.Parallel()
	steps := map[string][]func(*braid.Options){
		"raft": {
			func(o *braid.Options) { o.Protocol = braid.Raft{} },
			func(o *braid.Options) { o.Protocol = braid.CRaft{K: 2} },
			func(o *braid.Options) {
				o.Protocol = braid.Named("raft", "placement=code", "code-k=2", "extra-whole=1")
			},
			func(o *braid.Options) { o.Protocol = braid.Raft{} },
		},
		"lcr": {
			func(o *braid.Options) { o.Protocol = braid.LCR{} },
			func(o *braid.Options) { o.Protocol = braid.LCR{Coded: &braid.CRaft{K: 2}} },
			func(o *braid.Options) { o.Protocol = braid.LCR{} },
		},
		"niagara": {
			func(o *braid.Options) { o.Protocol = braid.Niagara{Instances: 2} },
			func(o *braid.Options) { o.Protocol = braid.Niagara{Instances: 3, Coded: &braid.CRaft{K: 2}} },
			func(o *braid.Options) { o.Protocol = braid.Named("raft", "order=niagara", "leaders=spread") },
		},
	}
	for name, all := range steps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := 0
			l := newLibrary(t, 3, func(o *braid.Options) { all[at](o) })
			for at = range all {
				for _, m := range l.members {
					if at > 0 {
						l.start(m, false)
					}
				}
				l.leader()
				l.put(fmt.Sprintf("step %d", at), 100, 5000)
				l.verify()
				for _, m := range l.members {
					l.stop(m.ID)
				}
			}
		})
	}
}
