package apply

import (
	"fmt"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// A state machine that keeps its state on disk may be further than the log of its member when that starts: other
// members had what was applied, and this one's log had not synced it. The log gets there again. If the state is of
// another log, or the log is an old copy, the log continues with other commands at the places that the state has
// already. They would be passed over. That shows in two ways: a command that was proposed in this incarnation stands
// where the state is already, or a read index is applied and the state is further. Both are impossible otherwise,
// because what the state had was decided before this incarnation began.

// StateAheadError says that a state on disk includes commands that the log does not have. The member stops, or does
// not start. What was proposed through it since its start may have been committed without taking effect in its state:
// nothing was acknowledged that did not. Put back the state machine and the directory of one and the same moment, or
// start a new member in its place.
type StateAheadError struct {
	State, Log protocol.Position
}

func (e *StateAheadError) Error() string {
	return fmt.Sprintf("braid: the state machine is at position %d, but the log of the cluster is at %d: they do not "+
		"belong together; "+
		"put both back as they were at one moment, or add a new member", e.State, e.Log)
}

// aheadOf is why a command of this incarnation may not stand at a position; nil: it may.
func (a *Applier) aheadOf(first protocol.Position) error {
	if a.brought < first || a.mutant == member.MutantStateUnchecked {
		return nil
	}
	return &StateAheadError{State: a.brought, Log: first - 1}
}

// doubtful reports whether the state that was found at the start is further than what is applied of the log.
// Until the log has come there no snapshot is taken, and no other member gets the state: it may be of another log.
func (a *Applier) doubtful() bool {
	return a.brought > a.order.Cursor().Position && a.mutant != member.MutantStateUnchecked
}

// Doubtful reports whether the state that was found at the start is further than what is applied of the log. Then Apply
// is to look at each read index that is known: see Note.
func (p *Applied) Doubtful() bool { return p.brought > p.cursor.Position }
