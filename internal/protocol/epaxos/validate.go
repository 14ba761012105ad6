package epaxos

// maxAgainst limits the undecided commands in one answer to Validate. The recovery asks again when these are decided.
const maxAgainst = 256

// Against is a member's answer to Validate (rule 7).
type Against struct {
	// Decided: a decided command contradicts.
	Decided bool
	Open    []ID // others that contradict, ascending in each column
	More    bool // more than Open contradict
}

// Validate records a command that a member recovers under a ballot, and returns the commands that contradict it. nil:
// another ballot was promised, or a decision is known, or nothing was promised.
func (r *Replica) Validate(id ID, ballot Ballot, cmd *Command) (*Record, Against) {
	rec := r.Record(id)
	if rec == nil || rec.Promised != ballot || rec.Phase == Decided {
		return nil, Against{}
	}
	if !rec.Begun {
		rec.Command, rec.Begun = cmd, true
		r.index.Know(id, cmd.Touches)
	}
	return rec, r.contradictions(id, cmd)
}

func (r *Replica) contradictions(id ID, cmd *Command) (a Against) {
	if r.mutant == MutantUnchecked {
		return a
	}
	executed := r.index.Executed(cmd.Touches)
	for i := range r.columns {
		c := Column(i + 1)
		if c == id.Column {
			continue // of two commands of one column the later one depends on the earlier one
		}
		// Executed commands do not depend on this one, which was not executed.
		if executed.At(c) > cmd.First.At(c) {
			a.Decided = true
		}
		r.contradictionsIn(c, id, cmd, &a)
	}
	return a
}

func (r *Replica) contradictionsIn(c Column, id ID, cmd *Command, a *Against) {
	for _, other := range r.columns[c-1].records {
		if other == nil || cmd.First.Covers(other.ID) || other.Command == nil ||
			!cmd.Touches.Interfere(other.Command.Touches) {
			continue
		}
		switch {
		case other.Phase == Decided:
			a.Decided = a.Decided || !other.Noop && !other.Deps.Covers(id)
		case !other.Begun || other.Command.First.Covers(id):
		case len(a.Open) == maxAgainst:
			a.More = true
		default:
			a.Open = append(a.Open, other.ID)
		}
	}
}

// Decision is the decision of a contradicting command, for recoveries that wait for it (Recovery.Learned). Executed
// commands are reported not to contradict: those that do were in the answer to Validate, or were learned since.
func (r *Replica) Decision(id ID) (Value, bool) {
	if r.Executed(id) {
		return Value{}, true
	}
	rec := r.Record(id)
	if rec == nil || rec.Phase != Decided {
		return Value{}, false
	}
	return rec.Value(), true
}
