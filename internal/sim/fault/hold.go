package fault

import (
	"time"

	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// Links that stall without loss. Messages sent meanwhile arrive when the links continue: after others have begun to
// elect a new leader, and at the same moment as the messages of that election. So messages of the old leader reach
// members that are about to vote. No other fault does that: with the others a message is delayed by less than a
// heartbeat, or lost.

var faultHold = &Fault{Name: "hold", Does: "links of a leader stall without loss"}

func init() {
	faultHold.Draw = (*Settings).drawHolds
	faultHold.Strike = holdLinks
	faultHold.End = func(w *World) { releaseLinks(w, w.held) }
}

// drawHolds draws whether links stall. Half of these runs have hardly any other fault: clients read at leaders whose
// lease may have expired.
func (s *Settings) drawHolds(d draw.Chance) {
	if s.Nodes == 1 || !d.Yes(0.15) {
		return
	}
	s.Faults[faultHold] = s.Election * time.Duration(3+d.Below(8))
	if d.Yes(0.5) {
		s.holdLeaders(d)
	}
}

func (s *Settings) holdLeaders(d draw.Chance) {
	s.Faults = rates{faultHold: s.Election * time.Duration(4+d.Below(3))}
	s.Timely()
	s.Drop, s.Corrupt = s.Drop/4, 0
	// An election then takes less than a heartbeat.
	s.DelayMin, s.DelayMax = s.Heartbeat/100, d.Duration(s.Heartbeat/50, s.Heartbeat/8)
	s.SyncMin, s.SyncMax = min(s.SyncMin, s.Heartbeat/100), min(s.SyncMax, s.Heartbeat/30)
	s.HopMax = min(s.HopMax, s.Heartbeat/200)
	s.Chaos = max(s.Chaos, 120*s.Election)
	s.watchLeaders(d)
	s.Core.LeaseReads = true
	s.setDrift(s.mostDrift() * [...]float64{0, 0, 0.2, 1}[d.Below(4)])
}

// standstill is a period of stalled links: those of a leader, and perhaps those between the others. One of the others
// may get its links back first; then it is the only one that can ask for votes.
type standstill struct {
	m        *node.Member
	first    *node.Member // nil: only links of m stall
	released bool         // some links continue already
}

// holdLinks stalls the links of a leader, first those to it: replies to its last messages reach it late, and it
// continues to lead. The links from it stall until about the time when the others elect another leader. Often the
// links between the others stall too: then several ask for votes, and one of them gets replies first.
func holdLinks(w *World, victim *node.Member) {
	m := w.SomeLeader()
	if m == nil {
		m = victim
	}
	if w.held != nil || w.promising != nil || len(w.Members) < 2 {
		return
	}
	h, e := &standstill{m: m}, w.Set.Election
	w.held = h
	w.Tracef("FAULT links of %s stand still", m.ID)
	if w.Chance(0.8) {
		holdAll(w, h, true, true)
		w.After(e-w.Between(0, e/2), func() { holdAll(w, h, true, false) })
	}
	w.After(w.Between(0, 2*w.Set.Heartbeat), func() { holdAll(w, h, false, true) })
	if w.Chance(0.7) {
		holdOthers(w, h, nil, true)
		h.first = w.Members[w.Pick(len(w.Members))]
		w.After(e+time.Duration(w.Rand.Float64()*float64(e)), func() { holdOthers(w, h, h.first, false) })
	}
	w.After(3*e, func() { releaseLinks(w, h) })
}

// holdAll stalls or releases all links to the member, or all links from it. It does nothing after the standstill.
func holdAll(w *World, h *standstill, inward, on bool) {
	if w.held != h {
		return
	}
	for _, o := range w.Members {
		if from, to := h.m.ID, o.ID; o != h.m && inward {
			holdLink(w, to, from, on)
		} else if o != h.m {
			holdLink(w, from, to, on)
		}
	}
}

// holdOthers is holdAll for the links between all other members, or for those to and from one of them.
func holdOthers(w *World, h *standstill, of *node.Member, on bool) {
	if w.held != h {
		return
	}
	for _, a := range w.Members {
		for _, b := range w.Members {
			if a != b && a != h.m && b != h.m && (of == nil || a == of || b == of) {
				holdLink(w, a.ID, b.ID, on)
			}
		}
	}
}

// holdLink stalls or releases a link. After a release, the held messages arrive within a trip, in order if streams
// keep the order.
func holdLink(w *World, from, to protocol.MemberID, on bool) {
	l := w.Net.Link(from, to)
	if on {
		l.Hold()
		return
	}
	last := time.Duration(0)
	for _, do := range l.Release() {
		at := w.Now() + w.Trip(from, to)
		if !w.Set.Reorder {
			last = max(last, at)
			at = last
		}
		w.At(at, do)
	}
	l.Delay(last)
}

// releaseFor releases links when a member campaigns, some of them later. So messages of the old leader reach members
// that are about to vote, and the candidate's messages do not reach the old leader at once. Some members receive
// votes of others for the candidate before the candidate's own request arrives.
func releaseFor(w *World, candidate *node.Member) {
	h := w.held
	if h == nil || h.m == candidate || w.Calm || h.released {
		return
	}
	h.released = true
	early, trip := w.Rand.Uint64(), w.Set.DelayMax+w.Set.SyncMax
	w.Tracef("FAULT some links of %s go on", h.m.ID)
	holdAll(w, h, true, false)
	for _, o := range w.Members {
		switch {
		case o == h.m || o == candidate:
		case early>>o.ID&1 == 1:
			holdLink(w, h.m.ID, o.ID, false)
			holdLink(w, candidate.ID, o.ID, true)
		}
	}
	w.After(w.Between(0, 2*trip), func() {
		for _, o := range w.Members {
			if o != candidate && o != h.m {
				holdOthersBut(w, h, candidate, o)
			}
		}
	})
	w.After(trip+w.Between(0, 2*trip), func() { holdOthers(w, h, nil, false) })
	w.After(w.Set.Election-w.Between(0, w.Set.Election/2), func() { releaseLinks(w, h) })
}

// holdOthersBut releases the links from a member to all others but the candidate.
func holdOthersBut(w *World, h *standstill, candidate, of *node.Member) {
	if w.held != h {
		return
	}
	for _, o := range w.Members {
		if o != of && o != candidate && o != h.m {
			holdLink(w, of.ID, o.ID, false)
		}
	}
}

// releaseLinks releases all links.
func releaseLinks(w *World, h *standstill) {
	if h == nil || w.held != h {
		return
	}
	w.Tracef("FAULT links of %s go on", h.m.ID)
	holdAll(w, h, true, false)
	holdAll(w, h, false, false)
	holdOthers(w, h, nil, false)
	w.held = nil
}
