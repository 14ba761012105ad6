package epaxos

import "slices"

// insert adds an id to an ascending list.
func insert(ids []ID, id ID) []ID {
	at, found := slices.BinarySearchFunc(ids, id, ID.compare)
	if found {
		return ids
	}
	return slices.Insert(ids, at, id)
}

// wait begins rule 8.
func (r *Recovery) wait() (Action, Value) {
	r.stage = waits
	if a, v := r.outside(); a != Nothing {
		return a, v
	}
	return Wait, Value{}
}

// Contradicting are the commands that are to be decided before this one; they are recovered if no one else decides
// them.
func (r *Recovery) Contradicting() []ID {
	if r.stage != waits {
		return nil
	}
	return r.open
}

// RulesOutFast reports whether the state of this recovery shows the recoveries that wait for this command that their
// own command was not decided on the fast path.
func (r *Recovery) RulesOutFast() bool {
	return r.stage == waits && r.Unchanged > r.size.rulesOutFast()
}

// Learned indicates that this member learned the decision of another command, or has executed it. The caller calls it
// for everything that the member learns after its own answer to Validate.
func (r *Recovery) Learned(id ID, v Value) (Action, Value) {
	if r.stage != validates && r.stage != waits || r.Command.First.Covers(id) || id.Column == r.ID.Column {
		return Nothing, Value{}
	}
	if v.Command != nil && !r.Command.Touches.Interfere(v.Command.Touches) {
		return Nothing, Value{}
	}
	if v.Command != nil && !v.Deps.Covers(r.ID) {
		r.decided = true
	}
	r.settled = insert(r.settled, id)
	if at, found := slices.BinarySearchFunc(r.open, id, ID.compare); found {
		r.open = slices.Delete(r.open, at, at+1)
	}
	if r.stage == waits {
		return r.resume()
	}
	return Nothing, Value{}
}

// resume continues when a command is decided for which this one waits.
func (r *Recovery) resume() (Action, Value) {
	switch {
	case r.decided:
		return r.propose(Value{})
	case len(r.open) > 0:
		return Nothing, Value{}
	case r.more:
		r.stage, r.valid, r.more = validates, nil, false // members that could not list all are asked again
		return Validate, Value{r.Command, r.Command.First}
	}
	return r.propose(Value{r.Command, r.Command.First})
}

// OtherWaits indicates that a recovery of a command waits, which rules out the fast path for this one.
func (r *Recovery) OtherWaits(id ID) (Action, Value) {
	if _, found := slices.BinarySearchFunc(r.open, id, ID.compare); !found || r.stage != waits {
		return Nothing, Value{}
	}
	return r.propose(Value{})
}

// outside applies the promises of members outside the quorum.
func (r *Recovery) outside() (Action, Value) {
	if best := r.accepted(); best != nil {
		return r.propose(best.Value)
	}
	for i := range r.reports {
		if r.reports[i].From == r.ID.Column && r.mutant != MutantAnyProposer {
			return r.propose(Value{})
		}
	}
	return Nothing, Value{}
}
