package fault

import "github.com/braidlog/braid/internal/sim/node"

var faultNarrow = &Fault{Name: "narrow", Thinned: true, Does: "links to or from a member have little bandwidth"}

func init() {
	faultNarrow.Strike = narrowLinks
	faultNarrow.End = func(w *World) { w.Net.Widen() }
}

// narrowLinks limits the bandwidth of all links to a member, or of all links from it, for a while, with a short
// queue.
func narrowLinks(w *World, m *node.Member) {
	inward := w.Chance(0.5)
	rate := int(float64(500+w.Pick(20_000)) / w.Set.Heartbeat.Seconds() / 10)
	queue := 500 + w.Pick(20_000)
	set := func(rate int) {
		for _, o := range w.Members {
			if from, to := m.ID, o.ID; o != m && inward {
				w.Net.Narrow(to, from, rate, queue)
			} else if o != m {
				w.Net.Narrow(from, to, rate, queue)
			}
		}
	}
	set(rate)
	w.Tracef("FAULT links of %s take %d bytes a second, inward: %t", m.ID, rate, inward)
	w.After(w.Between(w.Set.Election, 20*w.Set.Election), func() { set(0) })
}
