package wal

import (
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/vfs/errorfs"
)

// op is one record, one Compact, one Rewrite or one Remove: which is there or not after a crash.
type op struct {
	record  Record
	compact bool
	rewrite bool
	remove  bool
}

func (o op) String() string {
	if o.remove {
		return fmt.Sprintf("remove %d", o.record.Instance)
	}
	if o.rewrite {
		return fmt.Sprintf("rewrite %d", o.record.Instance)
	}
	if o.compact {
		return fmt.Sprintf("compact %d to %d", o.record.Instance, o.record.Index)
	}
	return fmt.Sprintf("%v %d/%d (%d bytes)", o.record.Kind, o.record.Instance, o.record.Index, o.record.size())
}

// model is a simple log: the expected results of Replay after some ops.
type model struct {
	state, base [modelInstances]string
	baseIndex   [modelInstances]uint64
	floor       [modelInstances]uint64
	entries     [modelInstances][]string
	cells       [modelInstances]map[uint64]string
}

const modelInstances = 3

// short abbreviates data in texts.
func short(data []byte) string {
	return fmt.Sprintf("%d:%08x", len(data), crc32.ChecksumIEEE(data))
}

func (m *model) clone() *model {
	c := *m
	for i := range c.entries {
		c.entries[i] = slices.Clone(c.entries[i])
		c.cells[i] = maps.Clone(c.cells[i])
	}
	return &c
}

func (m *model) apply(o op) {
	i, x := o.record.Instance, o.record.Index
	data := short(append(slices.Clone(o.record.Parts[0]), o.record.Parts[1]...))
	switch {
	case o.rewrite:
	case o.remove:
		m.state[i], m.base[i], m.baseIndex[i], m.floor[i], m.entries[i], m.cells[i] = "", "", 0, 0, nil, nil
	case o.record.Kind == KindCell:
		if m.cells[i] == nil {
			m.cells[i] = map[uint64]string{}
		}
		m.cells[i][x] = data
	case o.record.Kind == KindDrop:
		delete(m.cells[i], x)
	case o.compact:
		if x > m.floor[i] {
			m.entries[i] = m.entries[i][min(x-m.floor[i], uint64(len(m.entries[i]))):]
			m.floor[i] = x
		}
	case o.record.Kind == KindEntry:
		m.entries[i] = append(m.entries[i][:x-m.floor[i]-1], data)
	case o.record.Kind == KindState:
		m.state[i] = data
	case o.record.Kind == KindBase:
		m.base[i], m.baseIndex[i], m.floor[i], m.entries[i] = data, x, x, nil
	}
}

func (m *model) replay(i uint32) (all []string) {
	if m.state[i] != "" {
		all = append(all, "state 0 "+m.state[i])
	}
	if m.base[i] != "" {
		all = append(all, fmt.Sprintf("base %d %s", m.baseIndex[i], m.base[i]))
	}
	for k, e := range m.entries[i] {
		all = append(all, fmt.Sprintf("entry %d %s", m.floor[i]+1+uint64(k), e))
	}
	for _, x := range slices.Sorted(maps.Keys(m.cells[i])) {
		all = append(all, fmt.Sprintf("cell %d %s", x, m.cells[i][x]))
	}
	return all
}

func (m *model) text() string {
	var s strings.Builder
	for i := uint32(0); i < modelInstances; i++ {
		fmt.Fprintf(&s, "instance %d: %q\n", i, m.replay(i))
	}
	return s.String()
}

func logText(l *Log) (string, error) {
	var s strings.Builder
	for i := uint32(0); i < modelInstances; i++ {
		var all []string
		err := l.Replay(i, func(k Kind, index uint64, data []byte) error {
			all = append(all, fmt.Sprintf("%v %d %s", k, index, short(data)))
			return nil
		})
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&s, "instance %d: %q\n", i, all)
	}
	return s.String(), nil
}

// workload drives a log and its model with random ops.
type workload struct {
	rng    *rand.Rand
	last   *model
	states []string // states[k] is the model's text after k ops
	synced int      // ops known to be durable
	// trying is the number of ops that may be on disk, including the current call.
	trying int
	sizes  []int
	cells  bool // with cells, and instances that are removed
}

func newWorkload(seed uint64) *workload {
	w := &workload{rng: rand.New(rand.NewPCG(seed, 1)), last: &model{}, sizes: []int{0, 3, 40, 700, 5000}}
	w.states = []string{w.last.text()}
	return w
}

// from continues the workload from the state after a crash.
func (w *workload) from(seed uint64, m *model) *workload {
	n := newWorkload(seed)
	n.cells = w.cells
	n.last = m.clone()
	n.states = []string{m.text()}
	return n
}

func (w *workload) draw(m *model) op {
	i := uint32(w.rng.IntN(modelInstances))
	size := w.sizes[w.rng.IntN(len(w.sizes))]
	if w.cells && w.rng.IntN(4) == 0 {
		r := Record{Instance: i, Kind: KindCell, Index: w.rng.Uint64N(6) * 1000}
		if w.rng.IntN(3) == 0 {
			r.Kind = KindDrop
		} else {
			r.Parts[0] = payload(i, r.Index+w.rng.Uint64N(31), min(size, 700))
		}
		return op{record: r}
	}
	next := m.floor[i] + uint64(len(m.entries[i])) + 1
	switch r := w.rng.IntN(100); {
	case r < 10 && len(m.entries[i]) > 0: // replace
		next -= uint64(w.rng.IntN(min(5, len(m.entries[i]))) + 1)
		fallthrough
	case r < 70:
		return op{record: entry(i, next, payload(i, next*31+uint64(w.rng.IntN(31)), size))}
	case r < 80:
		return op{record: Record{Instance: i, Kind: KindState, Parts: [2][]byte{payload(i, w.rng.Uint64N(1000), size+1)}}}
	case r < 84:
		return op{record: Record{Instance: i, Kind: KindBase, Index: next + uint64(w.rng.IntN(9)),
			Parts: [2][]byte{payload(i, next, 9)}}}
	case r < 97 || !w.cells:
		return op{compact: true, record: Record{Instance: i, Index: next - 1 - uint64(w.rng.IntN(3))%next}}
	default:
		return op{rewrite: r == 97, remove: r > 97, record: Record{Instance: i}}
	}
}

// step does one call on the log: an Append of some records, a Compact or a Sync.
func (w *workload) step(l *Log) error {
	err := w.call(l)
	if err == nil {
		err = l.check()
	}
	return err
}

func (w *workload) call(l *Log) error {
	if w.rng.IntN(3) == 0 {
		w.trying = len(w.states) - 1
		err := l.Sync()
		if err == nil {
			w.synced = len(w.states) - 1
		}
		return err
	}
	var records []Record
	for n := w.rng.IntN(4) + 1; n > 0; n-- {
		o := w.draw(w.last)
		if (o.compact || o.rewrite || o.remove) && len(records) > 0 {
			break
		}
		w.last.apply(o)
		w.states = append(w.states, w.last.text())
		w.trying = len(w.states) - 1
		switch {
		case o.rewrite:
			return l.Rewrite(o.record.Instance)
		case o.remove:
			return l.Remove(o.record.Instance)
		case o.compact:
			return l.Compact(o.record.Instance, o.record.Index)
		}
		records = append(records, o.record)
	}
	return l.Append(records)
}

// verify opens the log after a crash and finds which ops are there; everything synced must be.
func (w *workload) verify(t testing.TB, fs vfs.FS) *Log {
	t.Helper()
	l, err := Open(Options{FS: fs, Dir: "/d/log", SegmentBytes: testSegment, Identity: []byte("me")})
	if err != nil {
		dump(t, fs)
	}
	require.NoError(t, err)
	require.NoError(t, l.check())
	got, err := logText(l)
	require.NoError(t, err)
	for k := w.trying; k >= w.synced; k-- {
		if w.states[k] == got {
			return l
		}
	}
	t.Fatalf("after a crash the log is\n%s\nwhich is none of the states %d (synced) to %d:\n%s\n%s",
		got, w.synced, w.trying, w.states[w.synced], w.states[w.trying])
	return nil
}

// dump logs the contents of a directory.
func dump(t testing.TB, fs vfs.FS) {
	t.Helper()
	err := Inspect(fs, "/d/log",
		func(s SegmentInfo) error { t.Logf("%+v", s); return nil },
		func(r RecordInfo) error { t.Log(r); return nil })
	t.Log(err)
}

// hooked calls hook before each operation that changes something.
func hooked(fs vfs.FS, hook func(op errorfs.Op) error) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.Reads() {
			return nil
		}
		return hook(op)
	}))
}

// TestCrashEverywhere tries a crash before every change of a file or directory, with all, none and some of the bytes
// that were not synced.
func TestCrashEverywhere(t *testing.T) {
	for seed := uint64(1); seed <= testsize.Pick[uint64](testsize.Storage, 1, 1, 2); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			crashEverywhere(t, seed, 40, 1, false)
		})
	}
	t.Run("long", func(t *testing.T) {
		crashEverywhere(t, 11, 400, 9, false)
	})
	t.Run("cells", func(t *testing.T) {
		crashEverywhere(t, 3, 40, 1, true)
		crashEverywhere(t, 12, 400, 9, true)
	})
}

// crashEverywhere crashes at one of every operations.
func crashEverywhere(t *testing.T, seed uint64, steps, every int, cells bool) {
	mem := vfs.NewCrashableMem()
	w := newWorkload(seed)
	w.cells = cells
	crash := rand.New(rand.NewPCG(seed, 2))
	crashes, reused, ops := 0, 0, 0
	fs := hooked(mem, func(o errorfs.Op) error {
		if o.Kind == errorfs.OpRename && strings.HasSuffix(o.Path, freeSuffix) {
			reused++
		}
		if ops++; ops%every != 0 {
			return nil
		}
		for _, percent := range []int{0, 50, 90} {
			crashes++
			clone := mem.Crash(percent, crash)
			again := w.verify(t, clone)
			crashAgain(t, w, again, clone, crash)
		}
		return nil
	})
	l := openMem(t, fs)
	for i := 0; i < steps; i++ {
		require.NoError(t, w.step(l))
	}
	require.NoError(t, l.Close())
	w.synced = len(w.states) - 1
	w.verify(t, mem.Crash(0, nil))
	require.Greater(t, crashes, 100)
	if steps > 200 {
		require.Greater(t, reused, 0, "no segment was used again")
	}
}

// crashAgain continues from a recovered log, and crashes it again: the remains of the first crash after the end must
// not reappear.
func crashAgain(t *testing.T, w *workload, l *Log, fs *vfs.Mem, crash *rand.Rand) {
	t.Helper()
	m := modelOf(t, l)
	next := w.from(crash.Uint64(), m)
	for i := 0; i < 3; i++ {
		require.NoError(t, next.step(l))
	}
	clone := fs.Crash(60, crash)
	last := next.verify(t, clone)
	require.NoError(t, last.Close())
}

// modelOf reads a log back into a model.
func modelOf(t testing.TB, l *Log) *model {
	t.Helper()
	m := &model{}
	for i := uint32(0); i < modelInstances; i++ {
		if in := l.index.find(i); in != nil {
			m.floor[i] = in.floor
		}
		require.NoError(t, l.Replay(i, func(k Kind, index uint64, data []byte) error {
			switch k {
			case KindState:
				m.state[i] = short(data)
			case KindBase:
				m.base[i], m.baseIndex[i] = short(data), index
			case KindEntry:
				m.entries[i] = append(m.entries[i], short(data))
			case KindCell:
				if m.cells[i] == nil {
					m.cells[i] = map[uint64]string{}
				}
				m.cells[i][index] = short(data)
			}
			return nil
		}))
	}
	return m
}

// TestFailEverywhere makes each operation on files fail once. The log must shut permanently, and have everything
// synced when it is opened again.
func TestFailEverywhere(t *testing.T) {
	testsize.Long(t)
	injected := errors.New("injected")
	kinds := map[errorfs.OpKind]int{}
	for at := 0; ; at++ {
		mem := vfs.NewCrashableMem()
		w := newWorkload(uint64(100 + at%7))
		w.cells = at%2 == 0
		n, hit := 0, false
		fs := hooked(mem, func(o errorfs.Op) error {
			n++
			if n-1 == at {
				kinds[o.Kind]++
				hit = true
				return injected
			}
			return nil
		})
		err := runToEnd(w, fs, 150)
		if !hit {
			require.NoError(t, err)
			break
		}
		require.ErrorIs(t, err, injected, "operation %d", at)
		again := w.verify(t, mem.Crash(50, w.rng))
		require.NoError(t, again.Close())
	}
	for _, k := range []errorfs.OpKind{errorfs.OpCreate, errorfs.OpRename, errorfs.OpFileWriteAt, errorfs.OpFileSync,
		errorfs.OpFileSyncData, errorfs.OpFilePreallocate, errorfs.OpMkdirAll, errorfs.OpLock} {
		require.Greater(t, kinds[k], 0, "no operation of kind %v failed", k)
	}
}

// runToEnd runs a workload until something fails, and checks that the log is shut then.
func runToEnd(w *workload, fs vfs.FS, steps int) error {
	l, err := Open(Options{FS: fs, Dir: "/d/log", SegmentBytes: testSegment, Identity: []byte("me")})
	if err != nil {
		return err
	}
	defer l.Close()
	for i := 0; i < steps; i++ {
		err := w.step(l)
		if err == nil {
			continue
		}
		var failed *FailedError
		if !errors.As(err, &failed) {
			return fmt.Errorf("not a FailedError: %v", err)
		}
		for _, again := range []error{l.Sync(), l.Append(nil), l.Compact(1, 1), l.Sync()} {
			if again != err {
				return fmt.Errorf("after %v the log answered %v", err, again)
			}
		}
		return err
	}
	w.trying = len(w.states) - 1
	return l.Close()
}

// flip changes one bit of a file.
func flip(t testing.TB, fs vfs.FS, name string, offset int64, bit int) {
	t.Helper()
	f, err := fs.OpenReadWrite(name)
	require.NoError(t, err)
	defer f.Close()
	var b [1]byte
	_, err = f.ReadAt(b[:], offset)
	require.NoError(t, err)
	b[0] ^= 1 << bit
	_, err = f.WriteAt(b[:], offset)
	require.NoError(t, err)
}

func segmentFiles(t testing.TB, fs vfs.FS) (names []string) {
	t.Helper()
	all, err := fs.List("/d/log")
	require.NoError(t, err)
	for _, name := range all {
		if strings.HasSuffix(name, liveSuffix) {
			names = append(names, "/d/log/"+name)
		}
	}
	slices.Sort(names)
	return names
}

// TestFlipEverywhere flips bits all over a log that was closed: each flip is detected, or
// changes nothing.
func TestFlipEverywhere(t *testing.T) {
	testsize.Long(t)
	mem := vfs.NewCrashableMem()
	w := newWorkload(7)
	w.sizes = []int{0, 3, 40, 300}
	l := openMem(t, mem)
	for l.current().seq < 3 {
		require.NoError(t, w.step(l))
	}
	require.NoError(t, l.Close())
	want := w.last.text()
	rng := rand.New(rand.NewPCG(1, 1))
	detected, harmless := 0, 0
	for _, name := range segmentFiles(t, mem) {
		for offset := int64(0); offset < testSegment; offset += int64(rng.IntN(23)) + 1 {
			bit := rng.IntN(8)
			flip(t, mem, name, offset, bit)
			got, err := openText(mem)
			var corrupt *CorruptError
			switch {
			case errors.As(err, &corrupt):
				require.Contains(t, corrupt.File, "/d/log/")
				detected++
			case err != nil:
				t.Fatalf("%s offset %d: %v", name, offset, err)
			case got != want:
				t.Fatalf("%s offset %d bit %d: the flip was taken for data:\n%s\nwant\n%s", name, offset, bit, got, want)
			default:
				harmless++
			}
			flip(t, mem, name, offset, bit)
		}
	}
	require.Greater(t, detected, 800) // a flip in the first page of a segment costs nothing
	t.Logf("%d flips detected, %d harmless", detected, harmless)
}

// openText opens a copy of a log and returns its contents.
func openText(mem *vfs.Mem) (string, error) {
	l, err := Open(Options{FS: copyOf(mem), Dir: "/d/log", SegmentBytes: testSegment, Identity: []byte("me")})
	if err != nil {
		return "", err
	}
	defer l.Close()
	return logText(l)
}

// copyOf copies a directory, synced or not.
func copyOf(mem *vfs.Mem) *vfs.Mem {
	c := vfs.NewMem()
	if err := vfs.Copy(mem, "/d", c, "/d"); err != nil {
		panic(err)
	}
	return c
}
