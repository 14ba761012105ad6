package store

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	bolt "go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/braidlog/braid/internal/store/increment"
	"github.com/braidlog/braid/internal/store/sums"
)

// chain is a whole backup with the increments that continue it.
type chain struct {
	t          *testing.T
	full       string
	increments []string
	now        increment.Point
	sum        string
}

// wholeBackup saves a member's state as a client does.
func wholeBackup(t *testing.T, n *node) *chain {
	t.Helper()
	var b bytes.Buffer
	n.clientSnapshot(&b)
	c := &chain{t: t, full: filepath.Join(t.TempDir(), "full.db")}
	require.NoError(t, os.WriteFile(c.full, b.Bytes(), 0o600))
	now, err := pointOfFile(c.full)
	require.NoError(t, err)
	c.now, c.sum = now, fmt.Sprintf("%x", b.Bytes()[b.Len()-32:])
	return c
}

// add saves a member's changes since the end of the chain, and returns the increment.
func (c *chain) add(n *node) *increment.File {
	c.t.Helper()
	i, err := n.Increment(c.t.Context(), c.now)
	require.NoError(c.t, err)
	name := filepath.Join(c.t.TempDir(), fmt.Sprint(len(c.increments)))
	f, err := os.Create(name)
	require.NoError(c.t, err)
	require.NoError(c.t, i.WriteTo(c.t.Context(), f, increment.Header{Cluster: 7, Base: c.sum, Time: time.Now()}))
	require.NoError(c.t, i.Close())
	require.NoError(c.t, i.Close())
	require.NoError(c.t, f.Close())
	in, err := increment.Open(name)
	require.NoError(c.t, err)
	require.NoError(c.t, in.Check())
	c.t.Cleanup(func() { in.Close() })
	c.now, c.sum, c.increments = in.Now, in.Sum, append(c.increments, name)
	return in
}

// restored imports the chain into a new directory.
func (c *chain) restored() string {
	c.t.Helper()
	dir := c.t.TempDir()
	require.NoError(c.t, Import(c.full, dir, ImportOptions{Increments: c.increments}))
	return dir
}

// contents is everything that a database has, but the name of the state that it began with.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	db, err := bolt.Open(filepath.Join(dir, "db"), 0o600, nil)
	require.NoError(t, err)
	out := map[string]string{}
	require.NoError(t, db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			return b.ForEach(func(k, v []byte) error {
				if !bytes.Equal(k, birthKey) {
					out[fmt.Sprintf("%s %x", name, k)] = string(v)
				}
				return nil
			})
		})
	}))
	require.NoError(t, db.Close())
	return out
}

// requireSame restores the chain, and a whole backup that a member saves now, and compares the two: the databases, and
// the hashes of all their history.
func (c *chain) requireSame(n *node) {
	c.t.Helper()
	whole, more := wholeBackup(c.t, n).restored(), c.restored()
	require.Equal(c.t, contents(c.t, whole), contents(c.t, more))
	a, b := open(c.t, testOptions(whole)), open(c.t, testOptions(more))
	require.Equal(c.t, a.dump(), b.dump())
	require.Equal(c.t, n.Revision(), b.Revision())
	require.Equal(c.t, n.CompactRevision(), b.CompactRevision())
	require.Equal(c.t, sortedLeases(n), sortedLeases(b))
	for revision := max(0, n.CompactRevision()) + 1; revision <= n.Revision(); revision++ {
		want, err := n.HashKV(c.t.Context(), revision)
		require.NoError(c.t, err)
		got, err := b.HashKV(c.t.Context(), revision)
		require.NoError(c.t, err)
		require.Equal(c.t, want, got)
	}
	require.NoError(c.t, a.Close())
	require.NoError(c.t, b.Close())
}

// compactSome compacts up to a revision, and waits until that is completed. The put keeps HashKV from answering with
// what it hashed meanwhile, which covers more.
func compactSome(t *testing.T, n *node, r *rand.Rand) {
	t.Helper()
	if from := max(n.CompactRevision(), 1); n.Revision() > from {
		res := n.must(compact(from + 1 + r.Int64N(n.Revision()-from)))
		require.NoError(t, n.FinishCompaction(t.Context(), res))
		n.must(put("after", "compaction"))
	}
}

// TestIncrementsRestoreTheSameState is the main test: increments restore the same database as a whole backup.
func TestIncrementsRestoreTheSameState(t *testing.T) {
	trimmed := 0
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			n := openTemp(t)
			finish := func(results []*Result) {
				for _, res := range results {
					require.NoError(t, n.FinishCompaction(t.Context(), res))
				}
			}
			finish(n.raw(randomLog(n, 100*seed, 1+r.IntN(150))...))
			c := wholeBackup(t, n)
			for step := range uint64(6) {
				for k := r.IntN(3); k > 0; k-- {
					finish(n.raw(randomLog(n, 100*seed+step+1, r.IntN(60))...))
					if r.IntN(2) == 0 {
						compactSome(t, n, r)
					}
				}
				if c.add(n).Trimmed {
					trimmed++
				}
				c.requireSame(n)
			}
			enableAuth(n)
			root := n.login("root", "r")
			require.NoError(t, n.doAs(root, put("admin", "as root")))
			c.add(n)
			c.requireSame(n)
		})
	}
	require.Greater(t, trimmed, 12, "compactions came between")
}

// TestIncrementsOfLargeValues: values that are not in the database are in the increments.
func TestIncrementsOfLargeValues(t *testing.T) {
	n := openLarge(t)
	r := rand.New(rand.NewPCG(3, 9))
	step := func() {
		for range 8 {
			key := fmt.Sprint("k", r.IntN(6))
			switch r.IntN(6) {
			case 0:
				n.must(del(key, ""))
			case 1:
				n.put(key, string(recordOf([]byte("x")).encode())) // it only looks like a large one
			case 2:
				n.put(key, "small")
			case 3:
				if from := max(n.CompactRevision(), 1); n.Revision() > from {
					n.compact(from + 1 + r.Int64N(n.Revision()-from))
				}
				n.put("after", "compaction")
			default:
				n.put(key, big('a'+byte(r.IntN(20)), threshold+r.IntN(1000)))
			}
		}
	}
	step()
	c := wholeBackup(t, n.node)
	for range 8 {
		step()
		c.add(n.node)
		require.Equal(t, contents(t, wholeBackup(t, n.node).restored()), contents(t, c.restored()))
	}
	n.put("last", big('z', threshold))
	c.add(n.node)
	n.bodies.set(func() { n.bodies.fail = errAway })
	n.put("lost", "x")
	c.add(n.node) // no large value is newer
	n.bodies.set(func() { n.bodies.fail = nil })
	n.put("lost", big('y', threshold))
	n.bodies.set(func() { n.bodies.fail = errAway })
	i, err := n.Increment(t.Context(), c.now)
	require.NoError(t, err)
	require.ErrorIs(t, i.WriteTo(t.Context(), new(bytes.Buffer), increment.Header{}), errAway)
	require.NoError(t, i.Close())
	require.NoError(t, n.Damage().Err(), "a value that cannot be had is no damage")
}

// TestIncrementWithinACompaction: of members that remove old history at different speeds, each continues the other's
// backups.
func TestIncrementWithinACompaction(t *testing.T) {
	slow := testOptions(t.TempDir())
	slow.CompactionBatchLimit, slow.CompactionSleepInterval = 1, time.Hour
	for name, order := range map[string][2]bool{"fast first": {true, false}, "slow first": {false, true}} {
		t.Run(name, func(t *testing.T) {
			o := slow
			o.Dir = t.TempDir()
			fast, late := openTemp(t), open(t, o)
			defer func() { require.NoError(t, late.Close()) }()
			members := map[bool]*node{true: fast, false: late}
			both := func(r *pb.InternalRaftRequest) *Result {
				late.must(r)
				return fast.must(r)
			}
			for k := range 30 {
				both(put(fmt.Sprint("k", k%7), fmt.Sprint(k)))
			}
			both(del("k1", "k4"))
			c := wholeBackup(t, members[order[0]])
			require.NoError(t, fast.FinishCompaction(t.Context(), both(compact(fast.Revision()))))
			c.add(members[order[0]])
			c.add(members[order[1]])
			both(put("k1", "later"))
			c.add(members[order[1]])
			both(put("k2", "later"))
			c.add(members[order[0]])
			restored := open(t, testOptions(c.restored()))
			settle(t, restored)
			settle(t, fast)
			want, err := fast.HashKV(t.Context(), 0)
			require.NoError(t, err)
			got, err := restored.HashKV(t.Context(), 0)
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.NoError(t, restored.Close())
		})
	}
}

// TestIncrementsOfOthersAreRefused: of a member that is behind, of another cluster, of another backup.
func TestIncrementsOfOthersAreRefused(t *testing.T) {
	n, other := filled(t), openTemp(t)
	c := wholeBackup(t, n)
	for range int(n.Applied()) + 10 {
		other.must(put("a", "b"))
	}
	other.must(compact(n.CompactRevision()))
	_, err := other.Increment(t.Context(), c.now)
	require.ErrorAs(t, err, new(*OtherHistoryError))
	ahead := c.now
	ahead.Position += 100
	_, err = n.Increment(t.Context(), ahead)
	require.ErrorAs(t, err, new(*BehindError))
	wrong := c.now
	wrong.Last = "zz"
	_, err = n.Increment(t.Context(), wrong)
	require.ErrorContains(t, err, "is no revision")
	require.Zero(t, n.database().refs.pins)
	require.Zero(t, n.frozen.open)

	first := *c
	root := n.login("root", "r")
	require.NoError(t, n.doAs(root, put("a", "1")))
	c.add(n)
	require.NoError(t, n.doAs(root, put("a", "2")))
	c.add(n)
	first.increments = c.increments[1:]
	err = Import(first.full, t.TempDir(), ImportOptions{Increments: first.increments})
	require.ErrorContains(t, err, "it continues a backup with the SHA-256")
}

// TestDamagedIncrementsAreRefused changes single bytes everywhere: no database is there afterwards.
func TestDamagedIncrementsAreRefused(t *testing.T) {
	n := filled(t)
	c := wholeBackup(t, n)
	root := n.login("root", "r")
	for k := range 20 {
		require.NoError(t, n.doAs(root, put("a", strings.Repeat("x", k))))
	}
	c.add(n)
	good, err := os.ReadFile(c.increments[0])
	require.NoError(t, err)
	dir := t.TempDir()
	refused := func(data []byte, what string) {
		require.NoError(t, os.WriteFile(c.increments[0], data, 0o600))
		err := Import(c.full, dir, ImportOptions{Increments: c.increments})
		require.Error(t, err, what)
		require.ErrorContains(t, err, c.increments[0], what)
		require.NoFileExists(t, filepath.Join(dir, "db"), what)
		left, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		require.Empty(t, left)
	}
	for at := 0; at < len(good); at += 1 + len(good)/60 {
		bad := bytes.Clone(good)
		bad[at] ^= 1 << (at % 8)
		refused(bad, fmt.Sprint("byte ", at))
	}
	for _, at := range []int{len(good) - 1, len(good) - 33, len(good) - 40, len(good) - 41} {
		bad := bytes.Clone(good)
		bad[at] ^= 0x10
		refused(bad, fmt.Sprint("byte ", at))
	}
	for _, length := range []int{0, 10, 60, len(good) / 2, len(good) - 1} {
		refused(good[:length], fmt.Sprint("length ", length))
	}
	refused(append(bytes.Clone(good), 0), "longer")
	require.NoError(t, os.WriteFile(c.increments[0], good, 0o600))
	require.NoError(t, Import(c.full, dir, ImportOptions{Increments: c.increments}))
}

// TestIncrementFindsDamage: a damaged database gets into no backup.
func TestIncrementFindsDamage(t *testing.T) {
	n := openTemp(t)
	n.must(put("a", "1"))
	c := wholeBackup(t, n)
	n.must(put("b", strings.Repeat("value", 100)))
	require.NoError(t, n.Sync())
	path := filepath.Join(n.opts.Dir, "db")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	at := bytes.LastIndex(data, []byte("valuevalue"))
	require.Positive(t, at)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	for p := bytes.Index(data, []byte("valuevalue")); p >= 0 && p <= at; p += 5 {
		_, err = f.WriteAt([]byte("w"), int64(p))
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	i, err := n.Increment(context.Background(), c.now)
	require.NoError(t, err)
	require.ErrorAs(t, i.WriteTo(t.Context(), new(bytes.Buffer), increment.Header{}), new(*sums.DamageError))
	require.NoError(t, i.Close())
	require.Error(t, n.Damage().Err())
}

// TestIncrementStopsWithContext, and blocks nothing while it is open.
func TestIncrementStopsWithContext(t *testing.T) {
	n := filled(t)
	c := wholeBackup(t, n)
	root := n.login("root", "r")
	i, err := n.Increment(t.Context(), c.now)
	require.NoError(t, err)
	defer i.Close()
	require.NoError(t, n.doAs(root, put("a", "1")))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, i.WriteTo(ctx, new(bytes.Buffer), increment.Header{}), context.Canceled)
}

// TestBumpBehindACompaction: the newest revision counts also where its entries were compacted.
func TestBumpBehindACompaction(t *testing.T) {
	n := openTemp(t)
	for range 5 {
		n.must(put("a", "1"))
	}
	n.must(del("a", ""))
	n.must(del("b", "c"))
	require.NoError(t, n.FinishCompaction(t.Context(), n.must(compact(n.Revision()))))
	before := n.Revision()
	c, dir := wholeBackup(t, n), t.TempDir()
	require.NoError(t, Import(c.full, dir, ImportOptions{BumpRevision: 1}))
	bumped := open(t, testOptions(dir))
	require.Equal(t, before+1, bumped.Revision())
	require.NoError(t, bumped.Close())
}

// TestIncrementsOfAnotherHistoryWithTheSameRevisions: a cluster that begins again with the same id is another one,
// also where it has compacted the newest revision of the backup.
func TestIncrementsOfAnotherHistoryWithTheSameRevisions(t *testing.T) {
	for _, large := range []bool{false, true} {
		t.Run(fmt.Sprint("large ", large), func(t *testing.T) {
			n, other := openTemp(t), openLarge(t)
			for k := range 10 {
				n.must(put(fmt.Sprint("k", k), "of the first"))
			}
			c := wholeBackup(t, n)
			for k := range 5 {
				other.put(fmt.Sprint("only", k), "of the second")
			}
			for k := range 20 {
				other.put(fmt.Sprint("k", k%3), "of the second")
			}
			if large {
				other.put("big", big('a', threshold))
			}
			other.compact(other.Revision())
			other.put("last", "of the second")
			_, err := other.Increment(t.Context(), c.now)
			require.ErrorAs(t, err, new(*OtherHistoryError))
			c.now.First, c.now.FirstSum = "", "" // as if both had removed it
			c.add(other.node)
			dir := t.TempDir()
			err = Import(c.full, dir, ImportOptions{Increments: c.increments})
			require.ErrorContains(t, err, c.increments[0])
			require.NoFileExists(t, filepath.Join(dir, "db"))
		})
	}
}

// TestOlderEntriesAreCompared: an increment is not applied to a base of another history, also if the increment has no
// checksums of the whole database.
func TestOlderEntriesAreCompared(t *testing.T) {
	n, other := openLarge(t), openLarge(t)
	for _, m := range []*large{n, other} {
		m.put("same", "in both")
		m.put("other", map[bool]string{true: "a", false: "b"}[m == n])
		m.put("last", big('c', threshold))
	}
	c, base := wholeBackup(t, other.node), wholeBackup(t, n.node)
	require.NoError(t, other.FinishCompaction(t.Context(), other.do(compact(2))))
	other.put("new", "x")
	c.add(other.node)
	require.NoError(t, Import(c.full, t.TempDir(), ImportOptions{Increments: c.increments}))
	in, err := increment.Open(c.increments[0])
	require.NoError(t, err)
	defer in.Close()
	in.Base = base.sum
	err = applyIncrement(base.full, base.sum, in)
	require.ErrorContains(t, err, "of another history")
}

// copyist writes an increment again, without some of its parts.
type copyist struct {
	*increment.Writer
	entries, left, pairs int // how many are left out
}

func (w *copyist) Left(next func() ([]byte, error)) error {
	for {
		key, err := next()
		if key == nil || err != nil {
			return err
		}
		if w.left--; w.left < 0 {
			w.Writer.Left(key)
		}
	}
}

func (w *copyist) Entry(key, value []byte) error {
	if w.entries--; w.entries < 0 {
		w.Writer.Entry(key, value)
	}
	return nil
}

func (w *copyist) Bucket(name []byte) error {
	w.Writer.Bucket(string(name))
	return nil
}

func (w *copyist) Pair(key, value []byte) error {
	if w.pairs--; w.pairs < 0 {
		w.Writer.Pair(key, value)
	}
	return nil
}

func (w *copyist) End() error { return nil }

// TestARestoredDatabaseIsCompared: an increment that is not damaged, but misses something, restores nothing.
func TestARestoredDatabaseIsCompared(t *testing.T) {
	n := openTemp(t)
	for k := range 9 {
		n.must(put(fmt.Sprint("k", k), "1"))
	}
	c := wholeBackup(t, n)
	n.must(grant(77, 1000))
	for k := range 5 {
		n.must(put(fmt.Sprint("k", k), "2"))
	}
	compactSome(t, n, rand.New(rand.NewPCG(1, 1)))
	in := c.add(n)
	require.True(t, in.Trimmed)
	for name, w := range map[string]*copyist{
		"nothing": {}, "an entry": {entries: 1}, "an older one that is left": {left: 1}, "a lease": {pairs: 1},
	} {
		var b bytes.Buffer
		w.Writer = increment.NewWriter(&b, &in.Header)
		require.NoError(t, in.Visit(w))
		require.NoError(t, w.Close(in.Now, in.LeftSum))
		file, dir := filepath.Join(t.TempDir(), "again"), t.TempDir()
		require.NoError(t, os.WriteFile(file, b.Bytes(), 0o600))
		err := Import(c.full, dir, ImportOptions{Increments: []string{file}})
		if name == "nothing" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, file, name)
		require.NoFileExists(t, filepath.Join(dir, "db"), name)
	}
}
