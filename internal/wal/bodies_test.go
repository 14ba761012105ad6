package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/vfs/errorfs"
)

const testBodies = 96 << 10 // the size of a file of bodies in tests

func openBodies(fs vfs.FS) (*Bodies, error) {
	return OpenBodies(BodiesOptions{FS: fs, Dir: "/d/bodies", SegmentBytes: testBodies, Identity: []byte("me")})
}

func openBodiesMem(t testing.TB, fs vfs.FS) *Bodies {
	t.Helper()
	b, err := openBodies(fs)
	require.NoError(t, err)
	return b
}

// someBody makes a body whose bytes follow from the other fields.
func someBody(instance uint32, index, term uint64, n int) Body {
	data := make([]byte, n)
	rng := rand.New(rand.NewPCG(uint64(instance)<<32+index, term))
	for i := 0; i+8 <= n; i += 8 {
		binary.LittleEndian.PutUint64(data[i:], rng.Uint64())
	}
	return Body{Instance: instance, Index: index, Term: term, Form: uint8(term%250) + 1, K: 3, Size: uint32(3 * n),
		Digest: uint32(index * term), Bytes: data}
}

func meta(b Body) Body {
	b.Bytes = nil
	return b
}

// check verifies the invariants of an open store.
func (b *Bodies) check() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	live, last := map[*bodyFile]int64{}, uint64(0)
	count := 0
	for _, h := range b.index {
		if h.length > 0 {
			count++
		}
	}
	if count != b.count {
		return fmt.Errorf("%d bodies, counted %d", count, b.count)
	}
	for _, f := range b.files {
		if f.seq <= last || f.removed {
			return fmt.Errorf("file %d after %d, removed: %v", f.seq, last, f.removed)
		}
		last = f.seq
		for _, h := range f.records {
			held := b.index[bodyKey{h.meta.Instance, h.meta.Index}] == h
			if h.file != f || h.live != (held || h.older) || held && h.older || h.older != slices.Contains(b.older, h) {
				return fmt.Errorf("record %+v of file %d", h.meta, f.seq)
			}
			if h.live {
				live[f] += h.size()
			}
		}
	}
	for key, h := range b.index {
		if key != (bodyKey{h.meta.Instance, h.meta.Index}) || !slices.Contains(b.files, h.file) {
			return fmt.Errorf("%v is held in file %d", key, h.file.seq)
		}
	}
	for _, f := range b.files {
		if f.live != live[f] {
			return fmt.Errorf("file %d has %d live bytes, not %d", f.seq, live[f], f.live)
		}
	}
	if b.end != b.start+int64(len(b.buf)) || b.durable > b.end {
		return fmt.Errorf("start %d, end %d, %d gathered, %d durable", b.start, b.end, len(b.buf), b.durable)
	}
	return nil
}

// bodyWork drives a store and a map with random calls.
type bodyWork struct {
	rng  *rand.Rand
	last map[bodyKey]Body
	// states[k] are the terms of the stored bodies after k calls of Append and Release.
	states         []map[bodyKey]uint64
	sizes          map[bodyKey]map[uint64]int // of all bodies ever appended, by term
	term           uint64
	synced, trying int
}

func newBodyWork(seed uint64) *bodyWork {
	return &bodyWork{rng: rand.New(rand.NewPCG(seed, 5)), last: map[bodyKey]Body{}, states: []map[bodyKey]uint64{{}},
		sizes: map[bodyKey]map[uint64]int{}}
}

func (w *bodyWork) remember() {
	now := map[bodyKey]uint64{}
	for k, body := range w.last {
		now[k] = body.Term
	}
	w.states = append(w.states, now)
	w.trying = len(w.states) - 1
}

// step does one call.
func (w *bodyWork) step(b *Bodies) error {
	err := w.call(b)
	if err == nil {
		err = b.check()
	}
	return err
}

func (w *bodyWork) call(b *Bodies) error {
	key := bodyKey{uint32(w.rng.IntN(3)), uint64(w.rng.IntN(12))}
	switch r := w.rng.IntN(100); {
	case r < 50:
		w.term++
		size := []int{0, 1, 63, 64, 700, 9000, largePart - 1, largePart, largePart + 5, 2 * largePart,
			4 * largePart}[w.rng.IntN(11)]
		body := someBody(key.instance, key.index, w.term, size)
		if w.sizes[key] == nil {
			w.sizes[key] = map[uint64]int{}
		}
		w.sizes[key][w.term] = size
		w.last[key] = body
		w.remember()
		if err := b.Append(body); err != nil {
			return err
		}
		return readBack(b, key, body)
	case r < 65:
		delete(w.last, key)
		w.remember()
		b.Release(key.instance, key.index)
		return nil
	case r < 75:
		_, err := b.Compact()
		return err
	case r < 80:
		return b.seal()
	}
	if err := b.Sync(); err != nil {
		return err
	}
	w.synced = len(w.states) - 1
	if w.rng.IntN(2) == 0 {
		b.LogDurable()
	}
	return nil
}

func readBack(b *Bodies, key bodyKey, want Body) error {
	got, err := b.Read(key.instance, key.index)
	if err != nil {
		return err
	}
	found, ok := b.Find(key.instance, key.index)
	if string(got.Bytes) != string(want.Bytes) || fmt.Sprint(meta(got)) != fmt.Sprint(meta(want)) || !ok ||
		fmt.Sprint(found) != fmt.Sprint(meta(want)) {
		return fmt.Errorf("body %v is %v with %d bytes, want %v with %d", key, meta(got), len(got.Bytes), meta(want),
			len(want.Bytes))
	}
	return nil
}

// verify opens the store after a crash. Everything synced must be there; released bodies may be there or not, until
// Retain.
func (w *bodyWork) verify(t testing.TB, fs vfs.FS) (*Bodies, map[bodyKey]uint64) {
	t.Helper()
	b := openBodiesMem(t, fs)
	require.Empty(t, b.Damaged())
	found := map[bodyKey]uint64{}
	b.Each(func(body Body) bool {
		found[bodyKey{body.Instance, body.Index}] = body.Term
		return true
	})
	for key, term := range found {
		size, ok := w.sizes[key][term]
		require.True(t, ok, "%v has term %d", key, term)
		require.NoError(t, readBack(b, key, someBody(key.instance, key.index, term, size)))
		require.NoError(t, b.Verify(key.instance, key.index))
	}
	k := w.trying
	for ; k >= w.synced && !covers(found, w.states[k]); k-- {
	}
	if k < w.synced {
		t.Fatalf("after a crash the bodies are\n%v\nwhich is none of the states %d (synced) to %d:\n%v\n%v", found, w.synced,
			w.trying, w.states[w.synced], w.states[w.trying])
	}
	b.Retain(func(body Body) bool { return w.states[k][bodyKey{body.Instance, body.Index}] == body.Term })
	require.NoError(t, b.check())
	return b, w.states[k]
}

func covers(found, want map[bodyKey]uint64) bool {
	for key, term := range want {
		if found[key] != term {
			return false
		}
	}
	return true
}

// from continues the work from the state after a crash.
func (w *bodyWork) from(seed uint64, state map[bodyKey]uint64) *bodyWork {
	n := newBodyWork(seed)
	n.term, n.states = w.term, []map[bodyKey]uint64{state}
	for key, sizes := range w.sizes {
		n.sizes[key] = map[uint64]int{}
		for term, size := range sizes {
			n.sizes[key][term] = size
		}
	}
	for key, term := range state {
		n.last[key] = someBody(key.instance, key.index, term, w.sizes[key][term])
	}
	return n
}

// TestBodiesCrashEverywhere tries a crash before changes of files and directories, with all, none and some of the
// bytes that were not synced, and continues from there to another crash.
func TestBodiesCrashEverywhere(t *testing.T) {
	for _, c := range []struct {
		seed         uint64
		steps, every int
	}{{1, 40, 1}, {2, 40, 2}, {3, 400, 29}}[testsize.Pick(testsize.Storage, 1, 1, 0):] {
		t.Run(fmt.Sprint(c.seed), func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			w := newBodyWork(c.seed)
			crash := rand.New(rand.NewPCG(c.seed, 6))
			crashes, reused, ops := 0, 0, 0
			b := openBodiesMem(t, hooked(mem, func(o errorfs.Op) error {
				if o.Kind == errorfs.OpRename && strings.HasSuffix(o.Path, freeSuffix) {
					reused++
				}
				if ops++; ops%c.every != 0 {
					return nil
				}
				for _, percent := range []int{0, 50, 90} {
					crashes++
					clone := mem.Crash(percent, crash)
					again, state := w.verify(t, clone)
					next := w.from(crash.Uint64(), state)
					for range 4 {
						require.NoError(t, next.step(again))
					}
					last, _ := next.verify(t, clone.Crash(60, crash))
					require.NoError(t, last.Close())
				}
				return nil
			}))
			for range c.steps {
				require.NoError(t, w.step(b))
			}
			require.NoError(t, b.Close())
			w.synced = len(w.states) - 1
			last, _ := w.verify(t, mem.Crash(0, nil))
			require.NoError(t, last.Close())
			require.Greater(t, crashes, 30)
			if c.steps > 100 {
				require.Greater(t, reused, 0, "no file was used again")
			}
		})
	}
}

// TestBodiesFailEverywhere makes each operation on files fail once. The store must shut
// permanently, and hold what was synced when it is opened again.
func TestBodiesFailEverywhere(t *testing.T) {
	testsize.Long(t)
	injected := errors.New("injected")
	kinds := map[errorfs.OpKind]int{}
	for at := 0; ; at++ {
		mem := vfs.NewCrashableMem()
		w := newBodyWork(uint64(100 + at%7))
		n, hit := 0, false
		err := bodiesToEnd(w, hooked(mem, func(o errorfs.Op) error {
			if n++; n-1 == at {
				kinds[o.Kind]++
				hit = true
				return injected
			}
			return nil
		}))
		if !hit {
			require.NoError(t, err)
			break
		}
		require.ErrorIs(t, err, injected, "operation %d", at)
		again, _ := w.verify(t, mem.Crash(50, w.rng))
		require.NoError(t, again.Close())
	}
	for _, k := range []errorfs.OpKind{errorfs.OpCreate, errorfs.OpRename, errorfs.OpFileWriteAt, errorfs.OpFileSync,
		errorfs.OpFileSyncData, errorfs.OpFilePreallocate, errorfs.OpMkdirAll, errorfs.OpLock} {
		require.Greater(t, kinds[k], 0, "no operation of kind %v failed", k)
	}
}

func bodiesToEnd(w *bodyWork, fs vfs.FS) error {
	b, err := openBodies(fs)
	if err != nil {
		return err
	}
	defer b.Close()
	for range 60 {
		err := w.step(b)
		if err == nil {
			continue
		}
		var failed *FailedError
		if !errors.As(err, &failed) {
			return fmt.Errorf("not a FailedError: %v", err)
		}
		_, compact := b.Compact()
		for _, again := range []error{b.Sync(), b.Append(Body{}), compact, b.seal(), b.Sync()} {
			if again != err {
				return fmt.Errorf("after %v the store answered %v", err, again)
			}
		}
		return err
	}
	w.trying = len(w.states) - 1
	return b.Close()
}

// fill appends bodies 1 to n of one instance, of growing terms.
func fill(t testing.TB, b *Bodies, n uint64, size int) {
	t.Helper()
	for i := uint64(1); i <= n; i++ {
		require.NoError(t, b.Append(someBody(1, i, i, size)))
	}
	require.NoError(t, b.Sync())
}

// TestCompactionGivesSpaceBack releases most bodies of each file: the rest moves together.
func TestCompactionGivesSpaceBack(t *testing.T) {
	fs := vfs.NewMem()
	b := openBodiesMem(t, fs)
	fill(t, b, 100, 8000)
	_, before := b.Size()
	for i := uint64(1); i <= 100; i++ {
		if i%10 != 0 {
			b.Release(1, i)
		}
	}
	for more := true; more; {
		var err error
		more, err = b.Compact()
		require.NoError(t, err)
		require.NoError(t, b.Sync())
		require.NoError(t, b.check())
	}
	live, total := b.Size()
	require.EqualValues(t, 10*bodyRecordSize(8000), live)
	require.Less(t, total, before/3)
	require.Less(t, total, 2*live+3*testBodies)
	for round := range 2 {
		for i := uint64(10); i <= 100; i += 10 {
			require.NoError(t, readBack(b, bodyKey{1, i}, someBody(1, i, i, 8000)), "round %d", round)
		}
		_, err := b.Read(1, 11)
		var missing *NotFoundError
		require.ErrorAs(t, err, &missing)
		require.Equal(t, NotFoundError{Instance: 1, Index: 11}, *missing)
		require.NoError(t, b.Close())
		b = openBodiesMem(t, fs)
	}
	require.NoError(t, b.Close())
}

// TestReopeningTakesNoSpace opens a store often, with and without a new body.
func TestReopeningTakesNoSpace(t *testing.T) {
	fs := vfs.NewMem()
	for i := uint64(1); i <= 30; i++ {
		b := openBodiesMem(t, fs)
		require.NoError(t, b.Append(someBody(1, i, i, 100)))
		for more := true; more; {
			var err error
			require.NoError(t, b.Sync())
			more, err = b.Compact()
			require.NoError(t, err)
		}
		require.NoError(t, b.Sync())
		require.NoError(t, b.Close())
		require.NoError(t, openBodiesMem(t, fs).Close())
	}
	names, err := fs.List("/d/bodies")
	require.NoError(t, err)
	require.Less(t, len(names), 10, "%v", names)
	b := openBodiesMem(t, fs)
	require.Len(t, b.all(), 30)
	require.NoError(t, b.Close())
}

// A body that changed after its checksum was computed is damaged when it is read, also after a restart.
func TestBodiesKeepTheChecksumOfTheCaller(t *testing.T) {
	mem := vfs.NewMem()
	b := openBodiesMem(t, mem)
	for i, n := range []int{100, 20_000} {
		right, wrong := someBody(1, uint64(2*i+1), 1, n), someBody(1, uint64(2*i+2), 1, n)
		for _, body := range []*Body{&right, &wrong} {
			body.Checksum, body.Checked = checksum(body.Bytes), true
		}
		wrong.Bytes[n/2] ^= 1
		require.NoError(t, b.Append(right))
		require.NoError(t, b.Append(wrong))
	}
	require.NoError(t, b.Sync())
	for range 2 {
		for index := range uint64(4) {
			got, err := b.Read(1, index+1)
			if index%2 == 0 {
				require.NoError(t, err)
				require.Equal(t, someBody(1, index+1, 1, len(got.Bytes)), got)
			} else {
				require.ErrorAs(t, err, new(*CorruptError))
			}
		}
		require.NoError(t, b.Close())
		b = openBodiesMem(t, mem)
	}
	require.NoError(t, b.Close())
}

// A new file does not get the number of one that was removed. The mark would say that the new file is durable up to
// where the removed one was.
func TestAFileIsNotNumberedAsARemovedOne(t *testing.T) {
	mem := vfs.NewCrashableMem()
	b := openBodiesMem(t, mem)
	require.NoError(t, b.Append(someBody(1, 1, 1, 2*testBodies))) // no other body uses a file of this size again
	require.NoError(t, b.Sync())
	require.NoError(t, b.Close())
	b = openBodiesMem(t, mem)
	b.Retain(func(Body) bool { return false })
	require.NoError(t, b.Sync())
	require.NoError(t, b.Close())

	b = openBodiesMem(t, mem)
	small := someBody(1, 2, 1, 100)
	require.NoError(t, b.Append(small))
	torn := mem.Crash(0, nil)
	require.NoError(t, b.Sync())
	for fs, want := range map[vfs.FS]int{torn: 0, mem.Crash(0, nil): 1} {
		again := openBodiesMem(t, fs)
		require.Empty(t, again.Damaged())
		require.Equal(t, want, again.Count())
		require.NoError(t, again.Close())
	}
	require.NoError(t, b.Close())
}

func TestBodiesOfAllSizes(t *testing.T) {
	b := openBodiesMem(t, vfs.NewMem())
	large := someBody(2, 1, 9, 3*testBodies)
	require.NoError(t, b.Append(large), "a body that is larger than a file gets a file")
	require.NoError(t, b.Append(someBody(1, 2, 3, 0)))
	require.NoError(t, b.Append(someBody(1, 1, 3, 10)))
	require.NoError(t, readBack(b, bodyKey{2, 1}, large))
	var keys []bodyKey
	b.Each(func(body Body) bool {
		keys = append(keys, bodyKey{body.Instance, body.Index})
		return len(keys) < 2
	})
	require.Equal(t, []bodyKey{{1, 1}, {1, 2}}, keys, "ascending, until told to stop")
	b.Release(2, 1)
	require.NoError(t, b.Sync())
	_, total := b.Size()
	require.EqualValues(t, testBodies, total)
	require.NoError(t, b.Close())
	require.NoError(t, b.Close(), "closing twice is no error")
	require.Equal(t, ErrClosed, b.Append(large))
	_, err := b.Read(1, 1)
	require.Equal(t, ErrClosed, err)
}

func TestBodiesOfOthers(t *testing.T) {
	fs := vfs.NewMem()
	b := openBodiesMem(t, fs)
	fill(t, b, 1, 10)
	var locked *LockedError
	_, err := openBodies(fs)
	require.ErrorAs(t, err, &locked)
	require.NoError(t, b.Close())
	var foreign *IdentityError
	_, err = OpenBodies(BodiesOptions{FS: fs, Dir: "/d/bodies", Identity: []byte("you")})
	require.ErrorAs(t, err, &foreign)
	require.Equal(t, "me", string(foreign.Have))
	b = openBodiesMem(t, fs)
	require.Len(t, b.all(), 1)
	require.NoError(t, b.Close())
}

// TestBodiesWithReaders reads, releases and lists bodies while others are appended and compacted, on real files.
func TestBodiesWithReaders(t *testing.T) {
	b, err := OpenBodies(BodiesOptions{Dir: t.TempDir() + "/bodies", SegmentBytes: 512 << 10, Identity: []byte("me")})
	require.NoError(t, err)
	const count, readers = 150, 3
	size := func(i uint64) int { return int(i * 977 % (2 * largePart)) }
	appended := make(chan uint64, count)
	done := make(chan struct{})
	var group sync.WaitGroup
	for r := range readers {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(r), 8))
			for i := range appended {
				i -= rng.Uint64N(min(i, 10))
				body, err := b.Read(1, i)
				var missing *NotFoundError
				switch want := someBody(1, i, i, size(i)); {
				case errors.As(err, &missing):
				case err != nil || string(body.Bytes) != string(want.Bytes):
					t.Errorf("body %d: %v, %d bytes", i, err, len(body.Bytes))
				}
				if i%5 != 0 {
					b.Release(1, i)
				}
			}
		})
	}
	group.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				live, total := b.Size()
				if live > total {
					t.Errorf("%d of %d bytes are live", live, total)
				}
				_, _ = b.Find(1, 7)
				b.Each(func(Body) bool { return true })
				runtime.Gosched()
			}
		}
	})
	for i := uint64(1); i <= count; i++ {
		require.NoError(t, b.Append(someBody(1, i, i, size(i))))
		appended <- i
		if i%7 == 0 {
			require.NoError(t, b.Sync())
			b.prepare(inGoroutine)
			_, err := b.Compact()
			require.NoError(t, err)
		}
	}
	close(appended)
	close(done)
	group.Wait()
	require.NoError(t, b.Sync())
	require.NoError(t, b.check())
	require.NoError(t, b.Close())
}

// TestReaderOfFreedBody: a reader that was held up gets its bytes although the body was released meanwhile and its
// file could have been reused.
func TestReaderOfFreedBody(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	held := false
	b := openBodiesMem(t, errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(o errorfs.Op) error {
		if o.Kind == errorfs.OpFileReadAt && held {
			close(entered)
			<-release
		}
		return nil
	})))
	fill(t, b, 1, 3000)
	held = true
	read := make(chan error, 1)
	go func() { read <- readBack(b, bodyKey{1, 1}, someBody(1, 1, 1, 3000)) }()
	receive(t, entered)
	held = false
	for i := uint64(2); i < 200; i++ {
		require.NoError(t, b.Append(someBody(2, i, i, 9000)))
		b.Release(2, i-1)
		require.NoError(t, b.Sync())
	}
	require.Greater(t, b.lastSeq, uint64(5))
	b.mu.Lock()
	delete(b.index, bodyKey{1, 1}) // as if it were released; the reader finds it afterwards
	b.index[bodyKey{1, 1}] = b.files[0].records[0]
	b.mu.Unlock()
	close(release)
	require.NoError(t, receive(t, read))
	require.NoError(t, b.Close())
}

// TestReplacedBodiesStayUntilTheLogIsDurable: an entry is replaced by one of another term, and the crash happens when
// the new body is durable and the new entry is not.
func TestReplacedBodiesStayUntilTheLogIsDurable(t *testing.T) {
	find := func(fs vfs.FS, keep uint64) (Body, bool) {
		b := openBodiesMem(t, fs)
		b.Retain(func(body Body) bool { return body.Index != 1 || body.Term == keep })
		require.NoError(t, b.check())
		defer b.Close()
		if _, ok := b.Find(1, 1); !ok {
			return Body{}, false
		}
		require.NoError(t, b.Verify(1, 1))
		body, err := b.Read(1, 1)
		require.NoError(t, err)
		return body, true
	}
	fs := vfs.NewCrashableMem()
	b := openBodiesMem(t, fs)
	for term := uint64(3); term <= 5; term++ {
		require.NoError(t, b.Append(someBody(1, 1, term, 60<<10))) // a file of its own
		require.NoError(t, b.Sync())
		for more, err := true, error(nil); more; { // other work does not drop them
			more, err = b.Compact()
			require.NoError(t, err)
			require.NoError(t, b.Sync())
		}
		require.NoError(t, b.check())
	}
	for term := uint64(3); term <= 5; term++ {
		got, ok := find(fs.Crash(0, nil), term)
		require.True(t, ok, "term %d", term)
		require.Equal(t, someBody(1, 1, term, 60<<10), got)
	}
	three, _ := b.Size()
	b.LogDurable()
	require.NoError(t, b.Sync())
	require.NoError(t, b.check())
	one, _ := b.Size()
	require.Equal(t, three, 3*one, "nobody needs the others any more")
	got, ok := find(fs.Crash(0, nil), 5)
	require.True(t, ok)
	require.EqualValues(t, 5, got.Term)
	require.NoError(t, b.Close())
}
