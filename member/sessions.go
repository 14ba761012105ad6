package member

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Sessions remembers which proposals took effect. So each takes effect at most once, however often
// it stands in the log. It is a deterministic function of the global log and part of every
// snapshot. One member has one live session in each instance, with numbers of its own. A batch
// stays with its instance, however often it is proposed (docs/niagara.md, 3.6). Work and memory
// are per batch, not per command.
type Sessions struct {
	// states is sorted by instance, member and line, with one state each. A newer life of a log
	// replaces the older one, whose late proposals are refused from then on. Another log of the
	// same member has a line of its own. It is never taken for an earlier or later life
	// (docs/identity.md).
	states []SessionState
}

// SessionState is what is known of one session.
type SessionState struct {
	Instance protocol.InstanceID `json:"instance"`
	Session  protocol.Session    `json:"session"`
	// Low is a number. Everything below it took effect or never will.
	Low uint64 `json:"low"`
	// Done are the sequence numbers ≥ Low that took effect: sorted, disjoint, not
	// adjacent, none ending at or below Low.
	Done []Span `json:"done,omitempty"`
}

// Span is the sequence numbers From … To−1.
type Span struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// NewSessions returns a table with the given states (from a snapshot).
func NewSessions(states []SessionState) *Sessions {
	s := &Sessions{}
	for _, st := range states {
		st.Done = slices.Clone(st.Done)
		s.states = append(s.states, st)
	}
	slices.SortFunc(s.states, func(a, b SessionState) int { return a.compare(b.Instance, b.Session) })
	return s
}

func (st *SessionState) compare(instance protocol.InstanceID, session protocol.Session) int {
	return cmp.Or(cmp.Compare(st.Instance, instance), cmp.Compare(st.Session.Member, session.Member),
		cmp.Compare(st.Session.Line(), session.Line()))
}

// States returns a copy for a snapshot, sorted by instance, member and line.
func (s *Sessions) States() []SessionState { return NewSessions(s.states).states }

// Admit reports whether the commands of an instance's entry take effect here and now. It remembers
// that they did. The commands of entries without a session always do.
func (s *Sessions) Admit(instance protocol.InstanceID, e *protocol.Entry) bool {
	if e.ID.Session.Member == 0 || e.Count == 0 {
		return true
	}
	st := s.find(instance, e.ID.Session)
	switch {
	case e.ID.Session.Life() < st.Session.Life():
		return false
	case e.ID.Session.Life() > st.Session.Life():
		*st = SessionState{Instance: instance, Session: e.ID.Session}
	}
	st.raise(e.Low)
	return st.mark(e.ID.Seq, e.ID.Seq+uint64(e.Count))
}

// find returns the state of the session's line, which is new if there was none.
func (s *Sessions) find(instance protocol.InstanceID, session protocol.Session) *SessionState {
	i, ok := slices.BinarySearchFunc(s.states, session, func(st SessionState, of protocol.Session) int {
		return st.compare(instance, of)
	})
	if !ok {
		s.states = slices.Insert(s.states, i, SessionState{Instance: instance, Session: session})
	}
	return &s.states[i]
}

// Retire forgets the sessions of the instances that are not in keep, which is ascending.
func (s *Sessions) Retire(keep []protocol.InstanceID) {
	s.states = slices.DeleteFunc(s.states, func(st SessionState) bool {
		_, ok := slices.BinarySearch(keep, st.Instance)
		return !ok
	})
}

func (st *SessionState) raise(low uint64) {
	if low <= st.Low {
		return
	}
	st.Low = low
	n := 0
	for n < len(st.Done) && st.Done[n].To <= low {
		n++
	}
	st.Done = slices.Delete(st.Done, 0, n)
}

// mark adds [from, to) and reports whether it was new. Batches never change, so a batch is known
// as a whole or not at all. Its first number decides.
func (st *SessionState) mark(from, to uint64) bool {
	if from < st.Low {
		return false
	}
	last := len(st.Done) - 1
	if last >= 0 && st.Done[last].To == from { // the usual case: the next batch
		st.Done[last].To = to
		return true
	}
	i, _ := slices.BinarySearchFunc(st.Done, from, func(s Span, v uint64) int { return cmp.Compare(s.To, v) })
	// i is the first span with To ≥ from.
	if i < len(st.Done) && st.Done[i].From <= from && from < st.Done[i].To {
		return false
	}
	switch {
	case i < len(st.Done) && st.Done[i].To == from:
		st.Done[i].To = to
	default:
		st.Done = slices.Insert(st.Done, i, Span{From: from, To: to})
	}
	if i+1 < len(st.Done) && st.Done[i+1].From == st.Done[i].To {
		st.Done[i].To = st.Done[i+1].To
		st.Done = slices.Delete(st.Done, i+1, i+2)
	}
	return true
}

// Check verifies the invariants.
func (s *Sessions) Check() error {
	for i := range s.states {
		st := &s.states[i]
		if i > 0 && s.states[i-1].compare(st.Instance, st.Session) >= 0 {
			return fmt.Errorf("sessions: not sorted at instance %d, member %s", st.Instance, st.Session.Member)
		}
		for j, d := range st.Done {
			if d.From >= d.To || d.To <= st.Low || j > 0 && st.Done[j-1].To >= d.From {
				return fmt.Errorf("sessions: member %s: spans %v above %d", st.Session.Member, st.Done, st.Low)
			}
		}
	}
	return nil
}
