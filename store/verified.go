package store

import (
	"sync"
	"weak"
)

// verifiedValues is how many values are remembered to be right.
const verifiedValues = 4096

// verified remembers which bytes were found to be those of a record, for as long as they are
// in memory: the log gives the same ones to all who read a value about the same time, and a
// SHA-256 costs more than anything else that is done with them. It keeps nothing alive; bytes
// that come to lie at the same address later have another weak pointer.
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
