package vfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// NewCrashableMem returns an empty file system that tracks what was synced, so that it can crash. It is slower than
// [NewMem], because every sync copies the file.
func NewCrashableMem() *Mem {
	m := NewMem()
	m.crashable = true
	return m
}

// blockBytes is the unit of a file that a crash keeps or loses.
const blockBytes = 4096

// Crash returns a copy of the file system after a power failure now: everything synced, and the given percentage of
// names and blocks that were not synced. With 0 rng may be nil. Names are drawn in order, so the seed determines the
// result. The file system itself continues, and the copy can crash too. Locks are not copied.
func (m *Mem) Crash(percent int, rng *rand.Rand) *Mem {
	if !m.crashable {
		panic("vfs: a file system that does not know what was synced cannot crash")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	out := NewCrashableMem()
	out.root = m.root.crash(func() bool { return percent > 0 && rng.IntN(100) < percent })
	return out
}

// crash returns the rest of a file or directory. keep draws whether a name or block that was not synced is kept.
func (n *node) crash(keep func() bool) *node {
	if n.names == nil {
		return n.crashFile(keep)
	}
	left := maps.Clone(n.syncedNames)
	if left == nil { // it was never synced
		left = map[string]*node{}
	}
	for _, name := range slices.Sorted(maps.Keys(n.names)) {
		if keep() {
			left[name] = n.names[name]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		left[name] = left[name].crash(keep)
	}
	return &node{names: left, syncedNames: maps.Clone(left)}
}

func (n *node) crashFile(keep func() bool) *node {
	out := &node{data: slices.Clone(n.syncedData)}
	for from := 0; from < len(n.data); from += blockBytes {
		if keep() {
			out.put(from, n.data[from:min(from+blockBytes, len(n.data))])
		}
	}
	out.syncedData = slices.Clone(out.data)
	return out
}
