package epaxos

// maxAgainst bounds what one answer to Validate names of undecided commands. Who validates asks again when
// these are decided.
const maxAgainst = 256

// Against is a member's answer to Validate (rule 7).
type Against struct {
	// Decided: a command contradicts that is decided.
	Decided bool
	Open    []ID // others that contradict, ascending in each column
	More    bool // there are more of these
}

// Validate keeps a command that someone recovers under a ballot, and says what contradicts it. nil: another ballot was
// promised, or a decision is known, or nothing was promised.
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
		if other == nil || cmd.First.Covers(other.ID) || other.Command == nil || !cmd.Touches.Interfere(other.Command.Touches) {
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

// Settled is the decision of a command that contradicts another one, for those that wait for it (Recovery.Learned). Of
// what was executed it says that it is no contradiction: what is one was named by Validate, or learned since.
func (r *Replica) Settled(id ID) (Value, bool) {
	if r.Executed(id) {
		return Value{}, true
	}
	rec := r.Record(id)
	if rec == nil || rec.Phase != Decided {
		return Value{}, false
	}
	return rec.Value(), true
}
