package store

import (
	"sync"
	"weak"
)

// verifiedValues is how many values are remembered to be right.
const verifiedValues = 4096

// verified caches which bytes in memory were found to be those of a record. The log gives the same bytes to all that
// read a value at about the same time, and the SHA-256 is the most expensive step of reading. It retains no memory.
// Other bytes at the same address later have another weak pointer.
type verified struct {
	mu    sync.Mutex
	known map[record]weak.Pointer[byte]
}

// check is record.verify with a memory.
func (v *verified) check(r record, value []byte) bool {
	if uint64(len(value)) != r.size || len(value) == 0 {
		return r.verify(value)
	}
	at := weak.Make(&value[0])
	v.mu.Lock()
	known := v.known[r] == at
	v.mu.Unlock()
	if known {
		return true
	}
	if !r.verify(value) {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known == nil || len(v.known) >= verifiedValues {
		v.known = make(map[record]weak.Pointer[byte])
	}
	v.known[r] = at
	return true
}
