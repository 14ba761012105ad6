package fault

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
)

// Damage to the state of a state machine that keeps its state on disk. The member takes part in the protocol as
// before, but serves no clients until it has the state of another member. Only one member at a time has a damaged
// state, so that others have an intact one. Runs with bodies have no such fault, because the references to bodies
// would be lost with the state. Nor have runs with membership changes, because an operator could remove the last
// member that has the state.

var faultState = &Fault{Name: "state-damage", Thinned: true,
	Does: "the state that a state machine keeps on disk is damaged"}

func init() {
	faultState.Draw = (*Settings).drawStateDamage
	faultState.Strike = SpoilState
}

var statesDamaged = count.New("states_damaged", "states damaged", count.Bodiless)

func (s *Settings) drawStateDamage(d draw.Chance) {
	if d.Yes(0.5) {
		s.Faults[faultState] = s.Election * time.Duration(4+d.Below(16))
		if d.Yes(0.5) {
			s.Faults[faultChange] = 0
		}
	}
}

// durableElsewhere reports whether the disk of another running member has all entries that a member has applied. That
// is not certain where slots may be skipped, because a skip is decided without any disk, nor where one member alone
// may decide.
func durableElsewhere(w *World, m *node.Member) bool {
	return slices.ContainsFunc(w.Except(m), func(o *node.Member) bool {
		return m.Up && o.Up && o.Inst.Core().Status().Durable >= m.Applied(m.Instance)
	})
}

// SpoilState damages a member's state, on disk and in use. Sometimes the member detects that at once, as its scrub
// would. Otherwise it detects that when it uses the state.
func SpoilState(w *World, m *node.Member) {
	lost := slices.ContainsFunc(w.Members, func(o *node.Member) bool { return o.Strange() })
	if !w.Set.Durable || w.Set.Bodies.Share > 0 || w.Set.Faults[faultChange] > 0 || lost || anySick(w) ||
		w.Set.Nodes == 1 { // no other member has the state
		return
	}
	if (w.Court.First.Core.Judged.ManyLead || w.Set.mayBeFlexible()) && !durableElsewhere(w, m) {
		return
	}
	w.Count(statesDamaged)
	w.Tracef("FAULT the state of %s goes bad", m.ID)
	m.Machines.First.Spoil()
	if w.Chance(0.5) {
		m.CheckState()
	}
}

// anySick reports whether some member's state is damaged, or still missing.
func anySick(w *World) bool {
	return slices.ContainsFunc(w.Members, func(m *node.Member) bool {
		return !m.Gone && (m.Saved != nil && m.Saved.Damage != nil || m.Stateless())
	})
}
