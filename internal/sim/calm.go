package sim

import (
	"slices"

	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/node"
)

// calmDown ends all faults and returns the members that are up in the second phase.
func calmDown(w *fault.World) []*node.Member {
	w.Calm = true
	w.Pass = nil
	w.Set.PerfectLinks()
	w.Set.Timely()
	w.HealFaults()
	for _, m := range w.Members {
		fault.Rectify(w, m)
		fault.EndApart(w, m)
		if m.Misled {
			fault.LeaveOther(w, m)
		}
	}
	alive := w.Core()
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
			m.Crash() // it has not noticed yet that its disk failed, or that its state belongs to another log
		}
		w.StartMember(m)
	}
	return alive
}

// demandRestarts sometimes restarts members, and demands progress again.
func demandRestarts(w *fault.World, alive []*node.Member) {
	if w.Chance(0.4) {
		restartSome(w, alive)
		demandProgress(w, alive, w.Chance(0.5))
	}
}

// restartSome cuts the power of some or all members while no client writes.
func restartSome(w *fault.World, alive []*node.Member) {
	all := w.Chance(0.5)
	for _, m := range alive {
		if all || w.Chance(0.5) {
			w.Tracef("FAULT %s loses power once more", m.ID)
			m.Crash()
			w.StartLater(m, w.Between(0, w.Set.Election))
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
