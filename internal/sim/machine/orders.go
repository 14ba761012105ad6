package machine

import (
	"fmt"
	"hash/fnv"
	"maps"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// Orders are the orders of commands: one for all, or one for each group of keys, or one for each key. They judge the
// commands that members apply in each of them.
type Orders struct {
	Groups int  // of keys, if each has an order of its own; otherwise 0
	ByKey  bool // commands have an order only where they have a key in common
	Keys   int  // the number of keys: KeyName(0) and so on

	sequences map[protocol.InstanceID]*check.Sequence
}

// firstOrder is the number of key k0's order. Groups of keys have lower numbers.
const firstOrder protocol.InstanceID = 1 << 20

// KeyName returns the name of the i-th key, from 0.
func KeyName(i int) string { return fmt.Sprintf("k%d", i) }

// KeysOf returns the hashes that select a command's group.
func KeysOf(key string) []uint64 {
	h := fnv.New64a()
	h.Write([]byte(key))
	return []uint64{h.Sum64()}
}

// GroupOf returns the group of a key; 0 if there are no groups.
func (o *Orders) GroupOf(key string) protocol.InstanceID {
	if o.Groups == 0 {
		return 0
	}
	group, _ := order.GroupOf(KeysOf(key), o.Groups)
	return protocol.FirstInstance + protocol.InstanceID(group)
}

// Of returns the number of the order of a key's commands; 0: that of all. If each key has an order, it must be one of
// KeyName.
func (o *Orders) Of(key string) protocol.InstanceID {
	if !o.ByKey {
		return o.GroupOf(key)
	}
	var number protocol.InstanceID
	if _, err := fmt.Sscanf(key, "k%d", &number); err != nil {
		panic(err) // clients use no others
	}
	return firstOrder + number
}

// Sequence returns the judge of an order.
func (o *Orders) Sequence(order protocol.InstanceID) *check.Sequence {
	s := o.sequences[order]
	if s == nil {
		if o.sequences == nil {
			o.sequences = map[protocol.InstanceID]*check.Sequence{}
		}
		s = &check.Sequence{}
		o.sequences[order] = s
	}
	return s
}

// at returns the sequence that judges the commands of a key, the position of this state machine in it, and the place
// of the next command, which is at a position.
func (s *Machine) at(key string, position protocol.Position) (*check.Sequence, *check.Cursor, protocol.Position) {
	if !s.c.Orders.ByKey {
		return s.sequence, &s.cursor, position
	}
	if s.cursors == nil {
		s.cursors = map[string]*check.Cursor{}
	}
	c := s.cursors[key]
	if c == nil {
		c = &check.Cursor{}
		s.cursors[key] = c
	}
	return s.c.Orders.Sequence(s.c.Orders.Of(key)), c, protocol.Position(s.values[key].Version + 1)
}

// placeKeys finds the position of a restored state, in the order of each key.
func (s *Machine) placeKeys() error {
	s.cursors = map[string]*check.Cursor{}
	if !s.c.Orders.ByKey {
		return nil
	}
	for key, v := range s.values { // any order: each is judged alone
		c, err := s.c.Orders.Sequence(s.c.Orders.Of(key)).Restore(uint64(s.c.Member), v.Version, v.chain)
		if err != nil {
			return fmt.Errorf("key %s: %w", key, err)
		}
		s.cursors[key] = &c
	}
	return nil
}

// behindInKeys reports whether a member has applied a command of a key that this state machine has not applied.
// Members with the same number of applied commands need not have applied the same ones.
func (s *Machine) behindInKeys() bool {
	for i := range s.c.Orders.Keys {
		key := KeyName(i)
		var at check.Cursor
		if c := s.cursors[key]; c != nil {
			at = *c
		}
		if s.c.Orders.Sequence(s.c.Orders.Of(key)).Behind(at) > 0 {
			return true
		}
	}
	return false
}

// judgeSameKeys checks that two members have the same state of each key, with everything that was applied.
func (s *Machine) judgeSameKeys(o *Machine) error {
	if !maps.Equal(s.values, o.values) {
		return fmt.Errorf("members %s and %s end in different states", o.c.Member, s.c.Member)
	}
	for key, c := range s.cursors { // any order: one is enough
		if n := s.c.Orders.Sequence(s.c.Orders.Of(key)).Behind(*c); n != 0 {
			return fmt.Errorf("member %s ends %d commands of key %s behind what was applied", s.c.Member, n, key)
		}
	}
	return nil
}
