package sim

import (
	"github.com/braidlog/braid/internal/sim/judge"
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
