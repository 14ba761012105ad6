package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// Some protocols order commands only where they have a key in common. There members' logs differ, and so do the positions of
// their commands. The judges look at each key as they look at the whole log elsewhere: its commands are numbered by its
// version. Whether a decision is kept the state machines tell, and the history.

// byKey reports whether the protocol is one of these.
func (s *Settings) byKey() bool { return s.protocol.Core.Judged.ByKey }

// fix leaves out what a protocol cannot do whose members do not change: a member that has lost its disk cannot be replaced.
func (s *Settings) fix() {
	var none []faultKind
	if s.protocol.Core.Judged.Fixed {
		s.Resize = false
		none = append(none, faultChange, faultWipe, faultOldDisk, faultHotCopy)
	}
	if s.byKey() {
		s.Durable = false // such a state cannot stay where members met last
	}
	for _, k := range none {
		s.Faults[k] = 0
	}
}

// firstOrder is the order of key k0 among the orders of keys. Groups of keys have lower numbers.
const firstOrder protocol.InstanceID = 1 << 20

// orderOf is the order in which a key's commands stand; 0: that of all.
func (w *World) orderOf(key string) protocol.InstanceID {
	if !w.set.byKey() {
		return w.groupOf(key)
	}
	var number protocol.InstanceID
	if _, err := fmt.Sscanf(key, "k%d", &number); err != nil {
		panic(err) // clients name no others
	}
	return firstOrder + number
}

// sequence judges what is applied to a key, and where in it this state machine is. It returns the place of the next command
// at a position.
func (s *stateMachine) at(key string, position protocol.Position) (*check.Sequence, *check.Cursor, protocol.Position) {
	if !s.w.set.byKey() {
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
	return s.w.sequenceOf(s.w.orderOf(key)), c, protocol.Position(s.values[key].version + 1)
}

// judgeMet judges that all members whose snapshots stand at one index have the same there. Which command was last is not
// the same, and nor is the first line of the state, which speaks of all commands in their order.
func (m *Member) judgeMet(meta member.Meta, state []byte) error {
	w := m.w
	if !w.set.byKey() {
		return nil
	}
	meta.Command, state = 0, state[bytes.IndexByte(state, '\n')+1:]
	text, err := json.Marshal(&meta)
	if err != nil {
		return err
	}
	at, h := meta.Cursor.Points[0].Index, fnv.New64a()
	h.Write(text)
	h.Write(state)
	if is, known := w.met[at]; known && is != h.Sum64() {
		return fmt.Errorf("member %s has another snapshot at index %d than a member before", m.id, at)
	}
	w.met[at] = h.Sum64()
	return nil
}

// placeKeys finds where a state that was restored is, in the order of each key.
func (s *stateMachine) placeKeys() error {
	s.cursors = map[string]*check.Cursor{}
	if !s.w.set.byKey() {
		return nil
	}
	for key, v := range s.values { // any order: each is judged alone
		c, err := s.w.sequenceOf(s.w.orderOf(key)).Restore(uint64(s.member.id), v.version, v.chain)
		if err != nil {
			return fmt.Errorf("key %s: %w", key, err)
		}
		s.cursors[key] = &c
	}
	return nil
}

// behindInKeys reports whether somebody has applied a command of a key that this state machine lacks. Members that have applied
// equally many commands need not have applied the same ones.
func (s *stateMachine) behindInKeys() bool {
	for i := range s.w.set.Keys {
		key := keyName(i)
		var at check.Cursor
		if c := s.cursors[key]; c != nil {
			at = *c
		}
		if s.w.sequenceOf(s.w.orderOf(key)).Behind(at) > 0 {
			return true
		}
	}
	return false
}

// judgeSameKeys judges that two members have the same state of each key, with all that was applied.
func (s *stateMachine) judgeSameKeys(o *stateMachine) error {
	if !maps.Equal(s.values, o.values) {
		return fmt.Errorf("members %s and %s end in different states", o.member.id, s.member.id)
	}
	for key, c := range s.cursors { // any order: one is enough
		if n := s.w.sequenceOf(s.w.orderOf(key)).Behind(*c); n != 0 {
			return fmt.Errorf("member %s ends %d commands of key %s behind what was applied", s.member.id, n, key)
		}
	}
	return nil
}
