package server

import (
	"sync"

	"github.com/braidlog/braid"
)

// memberNames are the names of the members that this one has known, for its log lines. It is safe for concurrent use.
type memberNames struct {
	mu sync.RWMutex
	of map[uint64]string
}

// learn takes in the names of members.
func (n *memberNames) learn(members []braid.Member) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil {
		n.of = map[uint64]string{}
	}
	for i := range members {
		if m := &members[i]; m.Name != "" {
			n.of[uint64(m.ID)] = m.Name
		}
	}
}

// name is the name of a member; "": it is not known.
func (n *memberNames) name(id uint64) string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.of[id]
}
