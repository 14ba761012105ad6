package sim

import (
	"fmt"
	"hash/fnv"
	"maps"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/protocol/wpaxos"
	"github.com/braidlog/braid/protocol"
)

// In a keyed order each group of keys has an order of its own, and a state machine of its own on each
// member. The judges look at each group as they look at the whole log elsewhere. Whether reads and writes of a
// key have an order, the history tells, which is judged key by key in any order.

// drawKeyed chooses who leads the groups, and takes enough keys that most groups have some. State machines on
// disk and bodies do not go with groups.
func (s *Settings) drawKeyed(d chance) {
	if !s.Keyed {
		return
	}
	s.Core.Leaders = [...]protocol.Leaders{protocol.LeadersTogether, protocol.LeadersSpread, protocol.LeadersAny}[d.below(3)]
	if s.protocol.Core.Roams {
		s.Core.Leaders = [...]protocol.Leaders{protocol.LeadersBegin, protocol.LeadersAny}[d.below(2)]
		s.Core.Own = wpaxos.Steal.Set(s.Core.Own, wpaxos.Stealing{
			Policy: [...]wpaxos.StealPolicy{wpaxos.StealConsecutive, wpaxos.StealMajority, wpaxos.StealAverage}[d.below(3)], After: 1 + d.below(12),
		})
	}
	if s.InboxBytes > 0 {
		s.InboxBytes = max(s.InboxBytes, leastKeyedInbox*s.Instances)
	}
	s.Keys += d.below(2 * s.Instances)
	if d.yes(0.5) { // one group may have all the work while others are idle
		s.Load.Hot *= d.share()
	}
	s.Load.Astray = 0.05 * d.share()
}

// leastKeyedInbox, for each group, has space for a small message of each of some members. A read asks all groups, and their
// answers come together. With less, most of them would be refused again and again.
const leastKeyedInbox = 500

// groupOf is the group of a key; 0 if the order is not keyed.
func (w *World) groupOf(key string) protocol.InstanceID {
	if !w.set.Keyed {
		return 0
	}
	group, _ := order.GroupOf(keysOf(key), w.set.Instances)
	return firstInstance + protocol.InstanceID(group)
}

// keysOf are the hashes by which a command's group is found.
func keysOf(key string) []uint64 {
	h := fnv.New64a()
	h.Write([]byte(key))
	return []uint64{h.Sum64()}
}

// drawKeys are the keys that a client says its command touches. Sometimes it says none, or one of another
// group too: then the command must be refused.
func (w *World) drawKeys(key string) []uint64 {
	keys := keysOf(key)
	if w.set.byKey() && !w.calm && w.early.yes(0.1) {
		if w.early.yes(0.5) {
			return nil // it may touch any
		}
		return append(keys, keysOf("k0")...)
	}
	if w.calm || !w.early.yes(w.set.Load.Astray) {
		return keys
	}
	if w.early.yes(0.5) {
		return nil
	}
	return append(keys, keys[0]+1)
}

// sequenceOf judges what is applied in a group; 0: in the global log.
func (w *World) sequenceOf(group protocol.InstanceID) *check.Sequence {
	if w.sequences == nil {
		w.sequences = map[protocol.InstanceID]*check.Sequence{}
	}
	s := w.sequences[group]
	if s == nil {
		s = &check.Sequence{}
		w.sequences[group] = s
	}
	return s
}

// machines are a member's state machines: one, or one for each group.
type machines struct {
	machine *stateMachine // the first one
	groups  []*stateMachine
	all     member.StateMachine
}

func newMachines(m *Member) (s machines, err error) {
	if !m.w.set.Keyed {
		s.machine = newMachine(m, 0)
		s.groups, s.all = []*stateMachine{s.machine}, s.machine.asStateMachine()
		return s, nil
	}
	begin := m.w.set.begin()
	s.all, err = apply.NewGroups(begin.Instances(), func(id protocol.InstanceID) member.StateMachine {
		g := newMachine(m, id)
		s.groups = append(s.groups, g)
		return g
	})
	s.machine = s.groups[0]
	return s, err
}

// of is the state machine that has a key.
func (s *machines) of(key string) *stateMachine {
	group := s.machine.w.groupOf(key)
	return s.groups[max(0, int(group)-int(firstInstance))]
}

// judgeGroup judges that a command is applied in the group of its key.
func (s *stateMachine) judgeGroup(key string) error {
	if want := s.w.groupOf(key); s.w.set.Keyed && want != s.group {
		return fmt.Errorf("a command of key %s is applied in group %d; its group is %d", key, s.group, want)
	}
	return nil
}

// judgeSame judges that two members have the same state, with all that was applied.
func (m *Member) judgeSame(first *Member) error {
	for i, s := range m.groups {
		o := first.groups[i]
		if m.w.set.byKey() {
			return s.judgeSameKeys(o)
		}
		if s.chain != o.chain || !maps.Equal(s.values, o.values) || !maps.Equal(s.bodies, o.bodies) {
			return fmt.Errorf("members %s and %s end in different states", first.id, m.id)
		}
		if n := s.sequence.Behind(s.cursor); n != 0 {
			return fmt.Errorf("member %s ends %d commands behind what was applied", m.id, n)
		}
	}
	return nil
}

// reached says how far a member has come, to find the one that knows the latest membership.
func (m *Member) reached() protocol.Position {
	at := m.applier.Cursor()
	if at.Keyed {
		return protocol.Position(at.Points[0].Index)
	}
	return at.Position
}
