package epaxos

import (
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Action is the next action after an answer.
type Action uint8

// The actions.
const (
	Nothing  Action = iota
	Decide          // the value is decided. The proposer makes it durable before it sends it to others (rule 4)
	Propose         // the value is to be proposed under the ballot
	Validate        // the quorum is to validate the command
	Wait            // contradicting commands are to be decided first
)

// outcome is the result of an answer.
type outcome struct {
	Action
	Value
}

func outcomeOf(a Action, v Value) outcome { return outcome{a, v} }

// members is a set of columns, ascending.
type members []Column

func (m members) has(c Column) bool { return slices.Contains(m, c) }

func (m members) with(c Column) members {
	at, found := slices.BinarySearch(m, c)
	if found {
		return m
	}
	return slices.Insert(m, at, c)
}

// Opening is ballot 0 of a command on its proposer (rules 2, 4 and 5). It does not survive a crash: a proposer that
// restarts recovers its commands.
type Opening struct {
	ID       ID
	Command  *Command
	size     Size
	mutant   protocol.Mutant
	answered members
	same     int
	union    Vector
	over     bool
}

// Open begins with the proposer's own record, which is durable before anything that follows from it.
func Open(rec *Record, size Size, mutant protocol.Mutant) *Opening {
	return &Opening{ID: rec.ID, Command: rec.Command, size: size, mutant: mutant, union: rec.Command.First.Clone()}
}

// Answer adds a member's dependencies, including the proposer's. When a quorum has answered and disagrees, the slow
// path begins. If it agrees but is too small for the fast path, more answers are awaited until Late.
func (o *Opening) Answer(from Column, deps Vector) (Action, Value) {
	if o.over || o.answered.has(from) {
		return Nothing, Value{}
	}
	o.answered = o.answered.with(from)
	if deps.Equal(o.Command.First) {
		o.same++
	}
	o.union = o.union.unite(deps)
	switch enough := len(o.answered) >= o.size.Quorum() && o.answered.has(o.ID.Column); {
	case o.same >= o.fast() && o.answered.has(o.ID.Column):
		return o.end(Decide, o.Command.First)
	case enough && o.same < len(o.answered):
		return o.end(Propose, o.union)
	}
	return Nothing, Value{}
}

// Late gives up the fast path if a quorum has answered.
func (o *Opening) Late() (Action, Value) {
	if o.over || len(o.answered) < o.size.Quorum() || !o.answered.has(o.ID.Column) {
		return Nothing, Value{}
	}
	return o.end(Propose, o.union)
}

func (o *Opening) fast() int {
	if o.mutant == MutantSmallFast {
		return o.size.Fast() - 1
	}
	return o.size.Fast()
}

func (o *Opening) end(a Action, deps Vector) (Action, Value) {
	o.over = true
	return a, Value{o.Command, deps.Clone()}
}

// Round is a ballot under which a value was proposed, with the members that accepted it.
type Round struct {
	Ballot   Ballot
	Value    Value
	accepted members
}

// Accepted adds an answer, and reports whether the value is decided now.
func (r *Round) Accepted(from Column, size Size) bool {
	if r.accepted.has(from) {
		return false
	}
	r.accepted = r.accepted.with(from)
	return len(r.accepted) == size.Quorum()
}
