package fault

import "github.com/braidlog/braid/internal/sim/node"

var (
	faultCrash = &Fault{Name: "crash", Usual: true, Thinned: true, Does: "a member loses power, or is asked to stop"}
	faultPower = &Fault{Name: "power", Usual: true, Thinned: true, Does: "all members lose power at once"}
)

func init() {
	faultCrash.Strike = stopMember
	faultCrash.Heal = func(m *node.Member) { m.Disk.PowerAt = 0 }
	faultPower.Strike = func(w *World, _ *node.Member) { powerLoss(w) }
}

// stopMember stops a member: it loses power at once or at one of its next writes, or it is told to stop. In each case
// it starts again later.
func stopMember(w *World, m *node.Member) {
	if w.Chance(0.4) {
		m.Disk.PowerAt = 1 + w.Pick(20)
		w.Tracef("FAULT %s will lose power at its write number %d", m.ID, m.Disk.PowerAt)
		return
	}
	back := w.Between(0, 6*w.Set.Election)
	if w.Chance(0.3) {
		LeaveFor(w, m, back)
		return
	}
	w.Tracef("FAULT %s loses power", m.ID)
	m.Crash()
	w.StartLater(m, back)
}

func powerLoss(w *World) {
	w.Tracef("FAULT everybody loses power")
	for _, m := range w.Members {
		if m.Up {
			m.Crash()
			w.StartLater(m, w.Between(0, w.Set.Election))
		}
	}
}
