package workload

import (
	"sync"
	"sync/atomic"
)

// frontier counts inserted keys. Keys are numbered in the order of their inserts' starts; those before every key
// whose insert is in progress are known to exist, and only these are read.
type frontier struct {
	next  atomic.Uint64 // the next key to insert
	limit atomic.Uint64 // all keys below were inserted

	mu sync.Mutex
	// done are inserts that ended while an earlier one was in progress, as bits of a ring that begins at limit.
	// Invariant: bit limit%ring is clear.
	done [ring / 64]uint64
}

// ring is the maximal distance of the last finished insert from the first unfinished one: it must exceed the number
// of clients.
const ring = 1 << 20

func newFrontier(keys int) *frontier {
	f := &frontier{}
	f.next.Store(uint64(keys))
	f.limit.Store(uint64(keys))
	return f
}

// take returns a key to insert.
func (f *frontier) take() uint64 { return f.next.Add(1) - 1 }

// known is the number of existing keys.
func (f *frontier) known() uint64 { return f.limit.Load() }

// finish records that the insert of a key ended.
func (f *frontier) finish(key uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done[key%ring/64] |= 1 << (key % 64)
	at := f.limit.Load()
	for word := &f.done[at%ring/64]; *word&(1<<(at%64)) != 0; word = &f.done[at%ring/64] {
		*word &^= 1 << (at % 64)
		at++
	}
	f.limit.Store(at)
}
