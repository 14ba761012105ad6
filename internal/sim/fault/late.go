package fault

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
)

// faultLate is drawn by drawAim.
var faultLate = &Fault{Name: "late", Thinned: true,
	Does: "a member misses entries and catches up over narrow links"}

func init() {
	faultLate.Strike = delayMember
}

// lateMembers adds members that are late, and enough load that they miss many entries. Logs are long enough to catch
// up from, and frames are small, so these members reply to leaders all the time.
func (s *Settings) lateMembers(d draw.Chance) {
	s.Faults = rates{faultLate: s.Election * time.Duration(2+d.Below(4))}
	if d.Yes(0.8) {
		s.Faults[faultCrash] = s.Election * 100
	}
	s.Core.MaxFrameEntries, s.Core.MaxFrameBytes = 1+d.Below(2), max(s.Core.MaxFrameBytes, 2000)
	s.KeepLogBytes = 1 << 20
	s.Bodies.Share, s.Reads, s.Load.Bursts, s.Load.Chase = 0.7+0.3*d.Share(), 0.05, 0, 0
	s.Clients, s.Operations, s.Think = 6+d.Below(8), 600, s.Heartbeat/2
	s.Aim = aimSettings{}
}

// delayMember cuts a member off for a while. Then it catches up over narrow links: one entry takes much of the time
// that a leader waits for a reply. Another member may be down meanwhile. So the member replies to the leader
// regularly, but new entries reach it last.
func delayMember(w *World, m *node.Member) {
	if w.late || m == w.Leader() || len(w.Members) < 3 {
		return
	}
	w.late = true
	others := slices.DeleteFunc(slices.Clone(w.Members), func(o *node.Member) bool { return o == m })
	both := func(do func(o *node.Member)) {
		for _, o := range others {
			do(o)
		}
	}
	w.Tracef("FAULT %s is cut off, and will be late", m.ID)
	both(func(o *node.Member) { w.Net.Link(o.ID, m.ID).Cut, w.Net.Link(m.ID, o.ID).Cut = true, true })
	w.After(time.Duration(1+w.Pick(8))*w.Set.Election, func() {
		if w.Calm {
			return
		}
		entry := 300 + w.Set.Padding/2 + (w.Set.Bodies.Min+w.Set.Bodies.Max)/4
		rate := int(float64(entry) / ((0.3 + w.Rand.Float64()) * w.Set.Heartbeat.Seconds()))
		w.Tracef("FAULT %s is late: its links take %d bytes a second", m.ID, rate)
		HealLinks(w)
		both(func(o *node.Member) { w.Net.Narrow(o.ID, m.ID, rate, 1<<20) })
		last := time.Duration(5+w.Pick(20)) * w.Set.Election
		if o := others[w.Pick(len(others))]; len(others) > 2 && o.Up && w.Set.Faults[faultCrash] > 0 && w.Chance(0.7) {
			w.Tracef("FAULT %s loses power while %s is late", o.ID, m.ID)
			o.Crash()
			w.StartLater(o, last)
		}
		w.After(last, func() {
			both(func(o *node.Member) { w.Net.Narrow(o.ID, m.ID, 0, 0) })
			w.late = false
		})
	})
}
