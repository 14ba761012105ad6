package fault

import (
	"time"

	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

var (
	faultPartition = &Fault{Name: "partition", Usual: true, Thinned: true,
		Does: "the cluster is split into two parts"}
	faultIsolate = &Fault{Name: "isolate", Usual: true, Thinned: true,
		Does: "the leader is cut off, in one or both directions"}
	faultOneWay = &Fault{Name: "one-way", Usual: true, Thinned: true, Does: "one link works in one direction only"}
)

func init() {
	for _, f := range []*Fault{faultPartition, faultIsolate, faultOneWay} {
		f.Strike = func(w *World, m *node.Member) { cutLinks(w, f, m) }
		f.End = HealLinks
	}
}

// cutLinks cuts links. Mostly they heal after a while.
func cutLinks(w *World, f *Fault, victim *node.Member) {
	if !w.Chance(w.Set.Meet.Overlap) {
		HealLinks(w)
	}
	alone := w.SomeLeader()
	if alone == nil || f == faultOneWay {
		alone = victim
	}
	side := func(m *node.Member) bool { return m == alone }
	if f == faultPartition {
		part := w.Rand.Uint64()
		side = func(m *node.Member) bool { return part>>m.ID&1 == 0 }
	}
	long := f == faultIsolate && w.Chance(w.Set.Meet.Long)
	both := f == faultPartition && w.Chance(0.8) || f == faultIsolate && w.Chance(0.5) || long
	outward := w.Chance(0.5)
	other := protocol.MemberID(1 + w.Pick(len(w.Members)))
	for _, a := range w.Members {
		for _, b := range w.Members {
			if a == b || side(a) == side(b) || f == faultOneWay && (side(a) && b.ID != other || side(b) && a.ID != other) {
				continue
			}
			w.Net.Link(a.ID, b.ID).Cut = both || side(a) == outward
		}
	}
	w.Tracef("FAULT links are cut:%s", describeCuts(w))
	if f != faultOneWay && alone.LeadsAny() {
		clocksAgainst(w, alone)
	}
	if long {
		w.After(w.election(), func() { HealLinks(w) })
	} else if w.Chance(0.7) {
		w.After(w.Between(0, 8*w.Set.Election), func() { HealLinks(w) })
	}
}

func describeCuts(w *World) string {
	text := ""
	for _, a := range w.Members {
		for _, b := range w.Members {
			if a != b && w.Net.Link(a.ID, b.ID).Cut {
				text += " " + a.ID.String() + "→" + b.ID.String()
			}
		}
	}
	return text
}

// HealLinks makes all links work, except those of a member that is away.
func HealLinks(w *World) {
	for _, a := range w.Members {
		for _, b := range w.Members {
			w.Net.Link(a.ID, b.ID).Cut = a.Away || b.Away
		}
	}
}

// isolateLeaders sometimes adds faults that cut leaders off or stop them for a while. Clients read what others write,
// and clocks may have the maximal drift. In most of these runs the others soon elect another leader, while the old
// one still believes that it leads.
func (s *Settings) isolateLeaders(d draw.Chance) {
	if !d.Yes(0.15) {
		return
	}
	if d.Yes(0.75) {
		s.Faults = rates{}
		s.Timely()
	}
	s.Chaos = max(s.Chaos, 40*s.Election)
	s.Faults[[...]*Fault{
		faultIsolate, faultFreeze, faultPause, faultPartition,
	}[d.Below(4)]] = s.Election * time.Duration(3+d.Below(3))
	if d.Yes(0.6) {
		s.Faults[faultIsolate] = s.Election * time.Duration(3+d.Below(3))
	}
	s.watchLeaders(d)
	s.Meet.Edge, s.Meet.Long, s.Meet.Against = 0.5+0.5*d.Share(), 0.3+0.7*d.Share(), 0.5+0.5*d.Share()
	s.Core.LeaseReads = d.Yes(0.7)
	s.setDrift(s.mostDrift() * [...]float64{0, 0.5, 1, 1}[d.Below(4)])
}
