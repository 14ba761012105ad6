package sim

import (
	"time"

	"github.com/braidlog/braid/protocol"
)

// Links that stand still and lose nothing. What is sent meanwhile arrives when they go on: after others
// have begun to elect a new leader, and at the same moment as what they send to each other. So a leader
// is heard of again by members that are about to vote. No other fault does that: a message is late by
// less than a heartbeat, or lost.

// drawHolds chooses whether links stand still. In half of these runs hardly anything else happens:
// clients read at leaders whose lease may be over.
func (s *Settings) drawHolds(d chance) {
	if s.Nodes == 1 || !d.yes(0.1) {
		return
	}
	s.Faults[faultHold] = s.Election * time.Duration(3+d.below(8))
	if d.yes(0.5) {
		s.holdLeaders(d)
	}
}

func (s *Settings) holdLeaders(d chance) {
	s.Faults = [faultKinds]time.Duration{faultHold: s.Election * time.Duration(4+d.below(3))}
	s.timely()
	s.Chaos = max(s.Chaos, 60*s.Election)
	s.watchLeaders(d)
	s.Core.LeaseReads = true
	s.setDrift(s.mostDrift() * [...]float64{0, 0, 0.2, 1}[d.below(4)])
}

// hold is a link's messages that stand still.
type hold struct {
	on      bool
	waiting []func() // deliver what was sent
}

// deliver lets a frame arrive at an instant, or when the link goes on.
func (l *link) deliver(w *World, at time.Duration, do func()) {
	if l.hold.on {
		l.hold.waiting = append(l.hold.waiting, do)
		return
	}
	w.queue.push(at, do)
}

// holdLinks lets the links of a leader stand still, first those to it, so that answers to what it has
// just sent reach it late and it leads on. What it sends stands still until about when others elect
// another leader.
func (w *World) holdLinks(victim *Member) {
	m := w.someLeader()
	if m == nil {
		m = victim
	}
	if w.held != nil {
		return
	}
	h := &standstill{m}
	w.held = h
	w.tracef("FAULT links of %s stand still", m.id)
	if w.chance(0.8) {
		w.holdAll(h, true, true)
		w.after(w.set.Election-w.between(0, w.set.Election/2), func() { w.holdAll(h, true, false) })
	}
	w.after(w.between(0, 2*w.set.Heartbeat), func() { w.holdAll(h, false, true) })
	w.after(3*w.set.Election, func() { w.goOn(h) })
}

// standstill is the time in which links of a member stand still.
type standstill struct{ m *Member }

// holdAll stops all links to the member, or from it, or lets them go on. It does nothing when the time is over.
func (w *World) holdAll(h *standstill, inward, on bool) {
	if w.held != h {
		return
	}
	for _, o := range w.members {
		if from, to := h.m.id, o.id; o != h.m && inward {
			w.holdLink(to, from, on)
		} else if o != h.m {
			w.holdLink(from, to, on)
		}
	}
}

// holdLink stops a link, or lets it go on: then what waits arrives within a trip, in order if streams keep it.
func (w *World) holdLink(from, to protocol.MemberID, on bool) {
	l := w.link(from, to)
	waiting := l.hold.waiting
	l.hold = hold{on: on}
	if on {
		l.hold.waiting = waiting
		return
	}
	last := time.Duration(0)
	for _, do := range waiting {
		at := w.now + w.trip(from, to)
		if !w.set.Reorder {
			last = max(last, at)
			at = last
		}
		w.queue.push(at, do)
	}
	for stream := range l.last { // any order: each for itself
		l.last[stream] = max(l.last[stream], last)
	}
}

// releaseFor lets links go on about when a member stands for election. So those that are about to vote
// hear of the old leader again.
func (w *World) releaseFor(candidate *Member) {
	if h := w.held; h != nil && h.m != candidate && !w.calm {
		w.after(w.between(0, w.set.DelayMax+w.set.SyncMax), func() { w.goOn(h) })
	}
}

// goOn lets all links go on.
func (w *World) goOn(h *standstill) {
	if h == nil || w.held != h {
		return
	}
	w.tracef("FAULT links of %s go on", h.m.id)
	w.holdAll(h, true, false)
	w.holdAll(h, false, false)
	w.held = nil
}
