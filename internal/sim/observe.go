package sim

import (
	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/sim/judge"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/protocol"
)

// changed implements observer.
func (w *World) changed(s *memberInstance, elected bool) {
	w.stands(s.witness)
	w.promiseStands(s.witness)
	if elected {
		w.elected(s)
	}
}

// decided implements observer.
func (w *World) decided(s *memberInstance, e *protocol.Entry) {
	w.firstDecision(s)
	w.askReplaced(s)
	if e.Coded() {
		w.decidedCoded(s.m, s.judges, e.Index)
	}
	if w.set.woven() && judge.SlotOf(e).Covers > 0 {
		w.judgeMerging(s.instance, e.Index)
	}
}

// loses implements observer.
func (w *World) loses(m *protocol.Message) bool {
	return w.mute(m.From, m.To) || w.Chance(w.set.Drop+w.burst) || w.pass != nil && !w.pass(m) || w.straggles(m)
}

// askReplaced lets clients read at members that believe that they lead, when another one has decided
// something in a later term. It asks once in a term.
func (w *World) askReplaced(s *memberInstance) {
	c := s.judges
	if w.calm || w.set.Faults[faultHold]+w.set.Faults[faultPromise] == 0 || c.ReadIn >= s.witness.status.Term {
		return
	}
	c.ReadIn = s.witness.status.Term
	for _, m := range w.upAnd((*Member).replaced) {
		w.comesTo(m, check.Get, machine.KeyName(0), 0)
	}
}
