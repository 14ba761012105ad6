package apply

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/protocol"
)

// Sessions remembers which proposals took effect. So each takes effect at most once, however often
// it stands in the logs, and through whichever instances. It is a deterministic function of the
// global log and part of every snapshot (docs/internals/niagara.md, 3.6). Work and memory are per batch, not
// per command.
//
// A session is of its origin: one log of one member. If it is marked as shared, the instances share
// its numbers, and it stays when an instance is retired. Without the mark it was written by an
// earlier program, in which each instance had numbers of its own. Such sessions are treated as that
// program did, until a shared session of the same origin follows.
type Sessions struct {
	// states is sorted by instance, member, line and incarnation, with one state each. Another log of the same member
	// has a line of its own. It is never taken for an earlier or later incarnation (docs/internals/identity.md). An
	// incarnation replaces the earlier ones of its line as soon as it says that they are over. Their late proposals are
	// refused from then on. So only the first state of a line says so, and if it is shared no state of the line is of
	// an instance.
	states []member.SessionState

	Mutant mutant.Name // weave-session-of-instance, keyed-session-of-all
}

// NewSessions returns a table with the given states (from a snapshot).
func NewSessions(states []member.SessionState) *Sessions {
	s := &Sessions{}
	for _, st := range states {
		st.Done = slices.Clone(st.Done)
		s.states = append(s.states, st)
	}
	slices.SortFunc(s.states, func(a, b member.SessionState) int {
		return cmp.Or(a.Compare(b.Instance, b.Session), cmp.Compare(a.Session.Rank(), b.Session.Rank()))
	})
	return s
}

// States returns a copy for a snapshot, sorted by instance, member, line and incarnation.
func (s *Sessions) States() []member.SessionState { return NewSessions(s.states).states }

// Admit reports whether the commands of an instance's entry take effect here and now. It remembers
// that they did. The commands of entries without a session always do.
func (s *Sessions) Admit(instance protocol.InstanceID, e *protocol.Entry) bool {
	if e.ID.Session.Member == 0 || e.Count == 0 {
		return true
	}
	st := s.of(instance, e)
	if st == nil {
		return false
	}
	st.RaiseLow(e.Low)
	return st.MarkDone(e.ID.Seq, e.ID.Seq+uint64(e.Count))
}

// of returns the state of an entry's session, which is new if there was none. It returns nil if a later incarnation has
// said that this one is over.
func (s *Sessions) of(instance protocol.InstanceID, e *protocol.Entry) *member.SessionState {
	session := e.ID.Session
	switch {
	case session.Shared() && s.Mutant != member.MutantSessionOfInstance || s.Mutant == member.MutantSessionOfAll:
		instance = 0
	case s.over(session):
		return nil
	}
	first, end := s.line(instance, session)
	at := first
	for at < end && s.states[at].Session.Rank() < session.Rank() {
		at++
	}
	switch {
	case at < end && s.states[at].Session == session:
	case at == first && first < end && s.states[first].Replaces():
		return nil
	default:
		s.states = slices.Insert(s.states, at, member.SessionState{Instance: instance, Session: session})
	}
	if session.Shared() && (e.Low == 0 || s.states[at].Low > 0) {
		return &s.states[at]
	}
	s.states = slices.Delete(s.states, first, at)
	if instance == 0 {
		s.forget(session)
	}
	return &s.states[first]
}

// line is where the states of a session's line are.
func (s *Sessions) line(instance protocol.InstanceID, session protocol.Session) (first, end int) {
	first, _ = slices.BinarySearchFunc(s.states, session, func(st member.SessionState, of protocol.Session) int {
		return st.Compare(instance, of)
	})
	end = first
	for end < len(s.states) && s.states[end].Compare(instance, session) == 0 {
		end++
	}
	return first, end
}

// over reports whether a shared session has replaced one whose numbers were of an instance.
func (s *Sessions) over(session protocol.Session) bool {
	if len(s.states) == 0 || s.states[0].Instance != 0 {
		return false // none is shared
	}
	first, end := s.line(0, session)
	return first < end && s.states[first].Replaces()
}

// forget forgets the sessions that instances had of an origin, because a shared one took their
// place.
func (s *Sessions) forget(session protocol.Session) {
	s.states = slices.DeleteFunc(s.states, func(st member.SessionState) bool {
		return st.Instance != 0 && st.Compare(st.Instance, session) == 0
	})
}

// Retire forgets the sessions that instances had which are not in keep. keep is ascending. Shared
// sessions stay: their proposals may come again through another instance.
func (s *Sessions) Retire(keep []protocol.InstanceID) {
	s.states = slices.DeleteFunc(s.states, func(st member.SessionState) bool {
		_, ok := slices.BinarySearch(keep, st.Instance)
		return !ok && st.Instance != 0
	})
}

// Take replaces what is known of some instances' numbers by what a snapshot says of them.
func (s *Sessions) Take(some []protocol.InstanceID, states []member.SessionState) {
	all := slices.DeleteFunc(slices.Clone(s.states),
		func(st member.SessionState) bool { return slices.Contains(some, st.Instance) })
	for _, st := range states {
		if slices.Contains(some, st.Instance) {
			all = append(all, st)
		}
	}
	s.states = NewSessions(all).states
}

// Check verifies the invariants.
func (s *Sessions) Check() error {
	for i := range s.states {
		st := &s.states[i]
		if err := s.checkLine(i); err != nil && s.Mutant == "" {
			return err
		}
		for j, d := range st.Done {
			if d.From >= d.To || d.To <= st.Low || j > 0 && st.Done[j-1].To >= d.From {
				return fmt.Errorf("sessions: member %s: spans %v above %d", st.Session.Member, st.Done, st.Low)
			}
		}
	}
	return nil
}

// checkLine verifies that a state has its place.
func (s *Sessions) checkLine(i int) error {
	st, wrong := &s.states[i], ""
	if i > 0 {
		before := &s.states[i-1]
		switch c := before.Compare(st.Instance, st.Session); {
		case c > 0, c == 0 && before.Session.Rank() >= st.Session.Rank():
			wrong = "not sorted"
		case c == 0 && st.Replaces():
			wrong = "a life that is over"
		}
	}
	switch {
	case st.Session.Shared() != (st.Instance == 0):
		wrong = "another one's numbers"
	case st.Instance != 0 && s.over(st.Session):
		wrong = "a session that was replaced"
	}
	if wrong == "" {
		return nil
	}
	return fmt.Errorf("sessions: %s at instance %d, member %s", wrong, st.Instance, st.Session.Member)
}
