package sim

import "slices"

// calmDown ends all faults and returns the members that live in the second phase.
func (w *World) calmDown() []*Member {
	w.calm = true
	w.pass = nil
	w.set.perfectLinks()
	w.set.timely()
	w.healFaults()
	for _, m := range w.members {
		w.rectify(m)
		w.endApart(m)
		if m.misled {
			w.leaveOther(m)
		}
	}
	alive := w.core()
	for _, m := range w.members {
		m.own.timely()
		if !slices.Contains(alive, m) {
			m.crash()
			m.gone = true
		}
	}
	w.Tracef("CALM: %s live", ids(alive))
	for _, m := range alive {
		if m.frozen {
			m.thaw()
		}
		if m.up && (m.writer.steps.Stats().Failed != nil || m.astray > 0) {
			m.crash() // it has not noticed yet that its disk failed, or that its state is of another log
		}
		w.startMember(m)
	}
	return alive
}

// demandRestarts sometimes restarts members, and demands progress again.
func (w *World) demandRestarts(alive []*Member) {
	if w.Chance(0.4) {
		w.restartSome(alive)
		w.demandProgress(alive, w.Chance(0.5))
	}
}

// restartSome lets some or all members lose power while no client writes.
func (w *World) restartSome(alive []*Member) {
	all := w.Chance(0.5)
	for _, m := range alive {
		if all || w.Chance(0.5) {
			w.Tracef("FAULT %s loses power once more", m.id)
			m.crash()
			w.startLater(m, w.Between(0, w.set.Election))
		}
	}
}

func ids(members []*Member) string {
	text := ""
	for i, m := range members {
		text += mark(i > 0, ", ") + m.id.String()
	}
	return text
}
