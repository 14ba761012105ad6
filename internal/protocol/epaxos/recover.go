package epaxos

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Report is the content of a promise: a member's state of the command.
type Report struct {
	From   Column
	Ballot Ballot // of the accepted value
	Phase  Phase
	Value  Value
}

// unchanged reports whether a member preaccepted the command with its first dependencies.
func (r *Report) unchanged() bool {
	return r.Phase == Preaccepted && r.Value.Deps.Equal(r.Value.Command.First)
}

type stage uint8

const (
	collects stage = iota
	validates
	waits
	finished
)

// Recovery decides a command under a ballot of this member (rules 6 to 8). It does not survive a crash.
type Recovery struct {
	ID     ID
	Ballot Ballot
	size   Size
	mutant protocol.Mutant
	stage  stage
	// reports are those of the quorum while it collects, and then those of members outside it.
	reports []Report
	// Quorum are the members that promised first, and are asked to validate Command.
	Quorum    members
	Command   *Command
	Unchanged int // members of the quorum that had its first dependencies
	valid     members
	decided   bool // a decided command contradicts
	more      bool // more commands contradict than are known
	open      []ID // contradicting commands that are not decided
	settled   []ID // those that were decided meanwhile, and do not contradict
}

// Recover begins to recover a command. The member's own answers come first: its promise is among the first calls of
// Promised, and its answer to Validate is the first call of Validated.
func Recover(id ID, b Ballot, size Size, mutant protocol.Mutant) *Recovery {
	return &Recovery{ID: id, Ballot: b, size: size, mutant: mutant}
}

// Promised adds a member's promise, including this one's own.
func (r *Recovery) Promised(report Report) (Action, Value) {
	for i := range r.reports {
		if r.reports[i].From == report.From {
			return Nothing, Value{}
		}
	}
	if r.stage == finished || r.Quorum.has(report.From) {
		return Nothing, Value{}
	}
	r.reports = append(r.reports, report)
	switch {
	case report.Phase == Decided:
		return r.end(Decide, report.Value)
	case r.stage == waits:
		return r.outside()
	case r.stage == collects && len(r.reports) == r.size.Quorum():
		return r.choose()
	}
	return Nothing, Value{}
}

// choose applies rule 6.
func (r *Recovery) choose() (Action, Value) {
	best := r.accepted()
	for i := range r.reports {
		report := &r.reports[i]
		r.Quorum = r.Quorum.with(report.From)
		if report.unchanged() {
			r.Unchanged++
			r.Command = report.Value.Command
		}
	}
	switch {
	case best != nil:
		return r.propose(best.Value)
	case r.mutant == MutantMerge && r.Command != nil:
		return r.propose(r.merged())
	case r.Quorum.has(r.ID.Column) && r.mutant != MutantAnyProposer, r.Unchanged < r.size.unchanged(len(r.Quorum)):
		return r.propose(Value{})
	}
	r.stage, r.reports = validates, nil
	return Validate, Value{r.Command, r.Command.First}
}

// accepted is the value accepted under the highest ballot among reports; nil: nothing.
func (r *Recovery) accepted() (best *Report) {
	for i := range r.reports {
		if report := &r.reports[i]; report.Phase == Accepted && (best == nil || report.Ballot > best.Ballot) {
			best = report
		}
	}
	return best
}

// merged is the choice of a mutant, which the rules forbid.
func (r *Recovery) merged() Value {
	v := Value{Command: r.Command, Deps: r.Command.First.Clone()}
	for i := range r.reports {
		if r.reports[i].Phase == Preaccepted {
			v.Deps = v.Deps.unite(r.reports[i].Value.Deps)
		}
	}
	return v
}

// Validated adds a member's answer to Validate. When all have answered, rule 7 applies.
func (r *Recovery) Validated(from Column, a Against) (Action, Value) {
	if r.stage != validates || !r.Quorum.has(from) || r.valid.has(from) {
		return Nothing, Value{}
	}
	r.valid = r.valid.with(from)
	r.decided = r.decided || a.Decided
	r.more = r.more || a.More
	for _, id := range a.Open {
		if _, known := slices.BinarySearchFunc(r.settled, id, ID.compare); !known {
			r.open = insert(r.open, id)
		}
	}
	if len(r.valid) < len(r.Quorum) {
		return Nothing, Value{}
	}
	switch {
	case r.decided, r.exact() && r.missing():
		return r.propose(Value{})
	case len(r.open) == 0, r.mutant == MutantOnlyDecided:
		return r.propose(Value{r.Command, r.Command.First})
	}
	return r.wait()
}

// exact reports whether, if the command was decided on the fast path, all outside the quorum preaccepted it
// with its first dependencies.
func (r *Recovery) exact() bool { return r.Unchanged == r.size.unchanged(len(r.Quorum)) }

// missing reports whether the proposer of a contradicting command is not in the quorum.
func (r *Recovery) missing() bool {
	for _, id := range r.open {
		if !r.Quorum.has(id.Column) {
			return r.mutant != MutantInexact
		}
	}
	return false
}

func (r *Recovery) propose(v Value) (Action, Value) {
	if r.mutant == MutantDropDeps && v.Command != nil {
		v.Deps = Vector{}.own(r.ID)
	}
	return r.end(Propose, v)
}

func (r *Recovery) end(a Action, v Value) (Action, Value) {
	r.stage, r.reports, r.open, r.settled = finished, nil, nil, nil
	return a, v
}

// Over reports whether nothing is left to do.
func (r *Recovery) Over() bool { return r.stage == finished }

func (r *Recovery) check() error {
	switch {
	case r.Ballot == 0:
		return fmt.Errorf("%s is recovered under ballot 0", r.ID)
	case r.stage == collects && len(r.reports) >= r.size.Quorum():
		return fmt.Errorf("%s: a quorum promised, and nothing follows", r.ID)
	case (r.stage == validates || r.stage == waits) && (r.Command == nil || len(r.Quorum) != r.size.Quorum()):
		return fmt.Errorf("%s is validated by %v", r.ID, r.Quorum)
	case r.stage == waits && len(r.open) == 0:
		return fmt.Errorf("%s waits for nothing", r.ID)
	}
	return nil
}
