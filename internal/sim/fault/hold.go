package fault

import (
	"time"

	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// Links that stall and lose nothing. What is sent meanwhile arrives when they continue: after others have begun
// to elect a new leader, and at the same moment as what they send to each other. So messages of the old leader
// reach members that are about to vote. No other fault does that: elsewhere a message is late by less than a
// heartbeat, or lost.

// faultHold: links of a leader stand still, and lose nothing.
var faultHold = &Fault{Name: "hold"}

func init() {
	faultHold.Draw = (*Settings).drawHolds
	faultHold.Strike = holdLinks
	faultHold.End = func(w *World) { releaseLinks(w, w.held) }
}

// drawHolds chooses whether links stand still. In half of these runs hardly anything else happens:
// clients read at leaders whose lease may be over.
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
	s.DelayMin, s.DelayMax = s.Heartbeat/100, d.Duration(s.Heartbeat/50, s.Heartbeat/8) // an election takes less than a heartbeat
	s.SyncMin, s.SyncMax = min(s.SyncMin, s.Heartbeat/100), min(s.SyncMax, s.Heartbeat/30)
	s.HopMax = min(s.HopMax, s.Heartbeat/200)
	s.Chaos = max(s.Chaos, 120*s.Election)
	s.watchLeaders(d)
	s.Core.LeaseReads = true
	s.setDrift(s.mostDrift() * [...]float64{0, 0, 0.2, 1}[d.Below(4)])
}

// standstill is the time in which links stall: those of a member that leads, and perhaps those between the
// others, except the links of one member, which is then the only one that can ask for votes.
type standstill struct {
	m        *node.Member
	first    *node.Member // nil: only links of m stand still
	released bool         // some have gone on
}

// holdLinks lets the links of a leader stand still, first those to it, so that answers to what it has
// just sent reach it late and it leads on. What it sends stands still until about when others elect
// another leader. Often the others' links stand still too: then several ask for votes, and one of them is answered first.
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

// holdAll stops all links to the member, or from it, or lets them go on. It does nothing when the time is over.
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

// holdLink stops a link, or lets it go on: then what waits arrives within a trip, in order if streams keep it.
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

// releaseFor lets links continue when a member stands for election, some of them later. So messages of the old
// leader reach members that are about to vote, and the candidate's do not reach the old leader at once. Some members
// learn from others that they voted for the candidate before its own request arrives.
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

// holdOthersBut lets the links of a member to all others but the candidate go on.
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

// releaseLinks lets all links go on.
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
