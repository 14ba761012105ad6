package machine

import (
	"fmt"
	"maps"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/protocol"
)

// Set is a member's state machines: one, or one for each group.
type Set struct {
	First  *Machine
	Groups []*Machine
	All    member.StateMachine // as package member sees them
}

// NewSet returns the state machines of these groups, in ascending order; none: there is one for all commands.
func NewSet(c Config, groups []protocol.InstanceID) (s Set, err error) {
	if len(groups) == 0 {
		s.First = New(c)
		s.Groups, s.All = []*Machine{s.First}, s.First.AsStateMachine()
		return s, nil
	}
	s.All, err = apply.NewGroups(groups, func(id protocol.InstanceID) member.StateMachine {
		c.Group = id
		g := New(c)
		s.Groups = append(s.Groups, g)
		return g
	})
	s.First = s.Groups[0]
	return s, err
}

// Of returns the state machine of a key.
func (s *Set) Of(key string) *Machine {
	group := s.First.c.Orders.GroupOf(key)
	return s.Groups[max(0, int(group)-int(protocol.FirstInstance))]
}

// Behind reports whether a member has applied a command that is missing here, where each key has its own order.
func (s *Set) Behind() bool {
	for _, g := range s.Groups {
		if g.c.Orders.ByKey && g.behindInKeys() {
			return true
		}
	}
	return false
}

// Same checks that two members have the same state, with everything that was applied.
func (s *Set) Same(first *Set) error {
	for i, m := range s.Groups {
		o := first.Groups[i]
		if m.c.Orders.ByKey {
			return m.judgeSameKeys(o)
		}
		if m.chain != o.chain || !maps.Equal(m.values, o.values) || !maps.Equal(m.bodies, o.bodies) {
			return fmt.Errorf("members %s and %s end in different states", o.c.Member, m.c.Member)
		}
		if n := m.sequence.Behind(m.cursor); n != 0 {
			return fmt.Errorf("member %s ends %d commands behind what was applied", m.c.Member, n)
		}
	}
	return nil
}
