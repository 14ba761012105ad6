package sim

import (
	"slices"

	"github.com/braidlog/braid/internal/sim/node"
)

// calmDown ends all faults and returns the members that live in the second phase.
func calmDown(w *World) []*node.Member {
	w.Calm = true
	w.pass = nil
	w.set.perfectLinks()
	w.set.Timely()
	w.healFaults()
	for _, m := range w.Members {
		rectify(w, m)
		endApart(w, m)
		if m.Misled {
			leaveOther(w, m)
		}
	}
	alive := w.core()
	for _, m := range w.Members {
		m.Own.Timely()
		if !slices.Contains(alive, m) {
			m.Crash()
			m.Gone = true
		}
	}
	w.Tracef("CALM: %s live", ids(alive))
	for _, m := range alive {
		if m.Frozen {
			m.Thaw()
		}
		if m.Up && (m.Writer.Steps.Stats().Failed != nil || m.Astray > 0) {
			m.Crash() // it has not noticed yet that its disk failed, or that its state is of another log
		}
		w.startMember(m)
	}
	return alive
}

// demandRestarts sometimes restarts members, and demands progress again.
func demandRestarts(w *World, alive []*node.Member) {
	if w.Chance(0.4) {
		restartSome(w, alive)
		demandProgress(w, alive, w.Chance(0.5))
	}
}

// restartSome lets some or all members lose power while no client writes.
func restartSome(w *World, alive []*node.Member) {
	all := w.Chance(0.5)
	for _, m := range alive {
		if all || w.Chance(0.5) {
			w.Tracef("FAULT %s loses power once more", m.ID)
			m.Crash()
			w.startLater(m, w.Between(0, w.set.Election))
		}
	}
}

func ids(members []*node.Member) string {
	text := ""
	for i, m := range members {
		text += node.Mark(i > 0, ", ") + m.ID.String()
	}
	return text
}
