package fault

import (
	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/sim/judge"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// Changed implements node.Observer.
func (w *World) Changed(s *node.MemberInstance, elected bool) {
	stands(w, s.Witness)
	promiseStands(w, s.Witness)
	if elected {
		strikeElected(w, s)
	}
}

// Decided implements node.Observer.
func (w *World) Decided(s *node.MemberInstance, e *protocol.Entry) {
	firstDecision(w, s)
	askReplaced(w, s)
	if e.Coded() {
		decidedCoded(w, s.Member, s.Judges, e.Index)
	}
	if slot := judge.SlotOf(e); w.Set.Merged() && slot.Covers > 0 && !slot.Waits {
		judgeMerging(w, s.Instance, e.Index)
	}
}

// Loses implements node.Observer.
func (w *World) Loses(m *protocol.Message) bool {
	return mute(w, m.From, m.To) || w.Chance(w.Set.Drop+w.burst) || w.Pass != nil && !w.Pass(m) || straggles(w, m)
}

// Ticked implements node.Observer: it checks the state of the member.
func (w *World) Ticked(m *node.Member) {
	m.CellBytes = max(m.CellBytes, m.Log.CellBytes())
	config := m.Applier.Config()
	if !config.Joint() && len(config.Removed) > 0 && m.Settled() {
		retire(w, config.Removed)
	}
	for _, s := range m.InForce {
		s.Judge()
	}
}

// askReplaced makes clients read at members that still believe that they lead, after another one has decided
// something in a later term. It does so once a term.
func askReplaced(w *World, s *node.MemberInstance) {
	c := s.Judges
	if w.Calm || w.Set.Faults[faultHold]+w.Set.Faults[faultPromise] == 0 || c.ReadIn >= s.Witness.Latest.Term {
		return
	}
	c.ReadIn = s.Witness.Latest.Term
	for _, m := range w.UpAnd((*node.Member).Replaced) {
		w.Clients.ComeTo(m, check.Get, machine.KeyName(0), 0)
	}
}
