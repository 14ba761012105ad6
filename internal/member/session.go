package member

import (
	"cmp"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// SessionState is what is known of one session.
type SessionState struct {
	// Instance is the one whose numbers these are; 0: all instances share them.
	Instance protocol.InstanceID `json:"instance"`
	Session  protocol.Session    `json:"session"`
	// Low is a number. Everything below it took effect or never will. 0: earlier incarnations are not
	// over, if the session is shared.
	Low uint64 `json:"low"`
	// Done are the sequence numbers ≥ Low that took effect: sorted, disjoint, not
	// adjacent, none ending at or below Low.
	Done []Span `json:"done,omitempty"`
}

// Replaces reports whether the earlier incarnations of the line are over.
func (st *SessionState) Replaces() bool { return st.Low > 0 || !st.Session.Shared() }

// Span is the sequence numbers From … To−1.
type Span struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// Compare compares the state's line with that of a session.
func (st *SessionState) Compare(instance protocol.InstanceID, session protocol.Session) int {
	return cmp.Or(cmp.Compare(st.Instance, instance), cmp.Compare(st.Session.Member, session.Member),
		cmp.Compare(st.Session.Line(), session.Line()))
}

func (st *SessionState) RaiseLow(low uint64) {
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

// MarkDone adds [from, to) and reports whether it was new. Batches never change, so a batch is known
// as a whole or not at all. Its first number decides.
func (st *SessionState) MarkDone(from, to uint64) bool {
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

func (st *SessionState) Token(seq uint64) TokenState {
	if seq < st.Low || slices.ContainsFunc(st.Done, func(s Span) bool { return s.From <= seq && seq < s.To }) {
		return TokenApplied
	}
	return TokenPending
}
