package fault

import (
	"time"

	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
)

// Leases of another length. A lease depends on what each member promises under the profile that it has, and members
// are rarely without a profile for long. So in some runs a tune is a story, which only loses and delays messages:
//
//   - The leader gets the longest election timeout that operators tune, from the shortest. One member, which is behind,
//     does not get this profile, and promises a short timeout only.
//   - Once the others have decided it, no other member reaches the leader. Shortly before their promise ends, one
//     heartbeat reaches the member that is behind, and the answer to it reaches the leader.
//   - When the promises end, the others elect a leader, while clients still read at the first one.

// tuneLeases has hardly any other fault than these stories. Clients read what others write, at each member.
func (s *Settings) tuneLeases(d draw.Chance) {
	s.Tunes.Leases = true
	s.Quickest = max(3*s.leastBeat(), s.Election/8)
	s.Faults = rates{faultTune: s.Election * time.Duration(3+d.Below(3))}
	s.Timely()
	s.DelayMin, s.DelayMax = min(s.DelayMin, s.Heartbeat/100), min(s.DelayMax, s.Heartbeat/20)
	s.SyncMin, s.SyncMax = min(s.SyncMin, s.Heartbeat/100), min(s.SyncMax, s.Heartbeat/20)
	s.Drop, s.Corrupt, s.Duplicate = 0, 0, 0
	s.Chaos = max(s.Chaos, 100*s.Election)
	s.watchLeaders(d)
	s.Think = s.Election / 2
	s.Operations = int(s.Chaos/s.Think) * s.Clients
	s.Meet, s.Aim = meetSettings{}, aimSettings{}
	s.Core.LeaseReads = true
	s.setDrift(0)
}

// tuneLease shortens the election timeout, or begins a story if it is short.
func tuneLease(w *World, d draw.Chance, l *node.Member) {
	others := w.UpAnd(func(m *node.Member) bool { return m != l })
	if len(others) < 2 || w.held != nil {
		return
	}
	profile := l.Witness.Latest.Config.Profile
	v := profile.Values
	if profile.Version == 0 {
		v = values(&w.Set.Core)
	}
	v, timeout := common.LeaseReads.Set(v, true), common.ElectionTimeout.In(v)
	v = common.Heartbeat.Set(v, w.Set.leastBeat())
	long := profile.Version > 0 && timeout <= w.Set.Quickest
	if timeout = w.Set.Quickest; long {
		timeout = w.Set.Election
	}
	next := profile.Next(common.ElectionTimeout.Set(v, timeout), w.Now().Milliseconds())
	next.Earlier = nil
	if long {
		lengthenLease(w, d, l, others)
	}
	askTune(w, l, next)
}

// lengthenLease is a story.
func lengthenLease(w *World, d draw.Chance, l *node.Member, others []*node.Member) {
	d.Rand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	behind, e, h := others[0], w.Set.Election, w.Set.leastBeat()
	trip := w.Set.DelayMax + w.Set.SyncMax + 4*w.Set.HopMax
	cut := func(from, to protocol.MemberID, on bool) { w.Net.Link(from, to).Cut = on }
	during := func(at time.Duration, do func()) {
		w.After(at, func() {
			if !w.Calm {
				do()
			}
		})
	}
	w.Tracef("FAULT %s is behind while %s tunes leases", behind.ID, l.ID)
	cut(l.ID, behind.ID, true)
	cut(behind.ID, l.ID, true)
	during(d.Duration(3*trip, 8*trip), func() {
		for _, m := range others[1:] {
			cut(l.ID, m.ID, true)
			cut(m.ID, l.ID, true)
		}
	})
	back := e - w.Set.Quickest + d.Duration(0, w.Set.Quickest)
	during(back, func() {
		w.Tracef("FAULT %s is reached by %s for a heartbeat", behind.ID, l.ID)
		cut(l.ID, behind.ID, false)
		cut(behind.ID, l.ID, false)
		holdLink(w, behind.ID, l.ID, true)
	})
	back += h + trip
	during(back, func() { cut(l.ID, behind.ID, true) })
	w.After(back+trip, func() { holdLink(w, behind.ID, l.ID, false) })
	during(back+3*trip, func() { cut(behind.ID, l.ID, true) })
	during(back+e+d.Duration(0, e), func() { HealLinks(w) })
}
