package code

import "github.com/braidlog/braid/protocol"

// Members tell each other in which forms they hold bodies. An answer says what the disk held when the answer was made,
// or will hold when it is released. A form only gets better while the entry is in the log (docs/internals/craft.md,
// D2), so late and repeated answers do no harm. A whole copy becomes a row only once its entry is committed and cut
// from the log. Answers that were made before that may leave after it, and do no harm either (docs/internals/craft.md,
// C7).

// Holdings says in what form this member holds the bodies of coded entries after a leader's
// commit index, up to match: what its disk holds now, or will when an answer is released.
func (v *View) Holdings(commit, match protocol.Index, now bool) (out []protocol.Holding) {
	if known := min(v.Commit, match); commit < min(known, v.Coded.Last) {
		t, _ := v.Log.Term(known)
		out = append(out, protocol.Holding{Index: known, Term: t, Form: protocol.FormCommitted})
	}
	for _, i := range v.Coded.Indexes {
		if i > match || len(out) == protocol.MaxHoldings {
			break
		}
		e := v.Log.At(i)
		f := e.Form
		if now {
			f = v.Disk.Holds(e)
		}
		if i > commit && f != protocol.FormNone {
			out = append(out, protocol.Holding{Index: i, Term: e.Term, Form: f})
		}
	}
	return out
}

// FormOf is in what form this member holds the body of exactly that entry (docs/internals/craft.md, 2.5).
func (v *View) FormOf(i protocol.Index, t protocol.Term) protocol.Form {
	switch {
	case i <= v.Commit:
		return protocol.FormCommitted
	case i <= v.Log.Last && v.Log.Matches(i, t):
		return v.Log.At(i).Form
	}
	return protocol.FormNone
}
