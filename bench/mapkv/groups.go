package mapkv

import (
	"github.com/braidlog/braid"
)

// State is the state that the service reads. A [Map] is one, and so are [Groups]. It is safe for concurrent use.
type State interface {
	// Get returns the value of a key.
	Get(key string) (value Value, ok bool)
	// Len returns the number of keys, and of commands that were only appended to the log.
	Len() (keys int, appended uint64)
}

// Groups are maps that each have a share of the keys, with a separate order for each share.
type Groups []*Map

// NewGroups returns the given number of empty maps, and the state machine that combines them.
func NewGroups(n int) (Groups, braid.StateMachine, error) {
	g := make(Groups, n)
	sm, err := braid.NewGroups(n, func(group int) braid.StateMachine {
		g[group] = NewMap()
		return g[group]
	})
	return g, sm, err
}

// Get implements [State], as Len does.
func (g Groups) Get(key string) (Value, bool) {
	group, _ := braid.GroupOf([]uint64{hash(key)}, len(g))
	return g[group].Get(key)
}

// Len adds up the groups.
func (g Groups) Len() (keys int, appended uint64) {
	for _, m := range g {
		k, a := m.Len()
		keys, appended = keys+k, appended+a
	}
	return keys, appended
}
