package fault

import (
	"errors"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
)

// An operator may give a member the state machine of another log: one that has applied entries that the member's log
// does not have. The member must not start, or must stop before it serves any client. Then the operator restores the
// right one.

var foreignStatesFound = count.New("states_of_another_log_found", "states of another log found", count.Bodiless)

// drawAstray draws how often a member is started with such a state machine. Runs with bodies are excluded: a member
// drops the bodies of commands that its state machine claims to have applied.
func (s *Settings) drawAstray(d draw.Chance) {
	if often := d.Yes(0.6); often && s.Durable && s.Bodies.Share == 0 {
		s.Astray = 0.5 * d.Share()
	}
}

// foundAstray reports whether an error says that the state machine is ahead of the log, and that is true. Then the
// member starts again with its own state machine.
func foundAstray(w *World, m *node.Member, err error) bool {
	var began *member.MachineError // a log that is at its beginning is begun with no other state
	if m.Astray == 0 || !errors.As(err, new(*apply.StateAheadError)) && !errors.As(err, new(*member.DirError)) &&
		!(errors.As(err, &began) && began.Op == "restore") {
		return false
	}
	w.Tracef("%s finds that its state is of another log: %v", m.ID, err)
	w.Count(foreignStatesFound)
	w.StartLater(m, w.Between(0, 3*w.Set.Election))
	return true
}
