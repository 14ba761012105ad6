package sim

import "time"

// drawLines chooses how long events take at most from one part of a member to another.
func (s *Settings) drawLines(d chance) {
	if d.yes(0.6) {
		s.HopMax = d.duration(0, s.Heartbeat/2)
	}
}

// drawTurnLimits chooses how much may wait for instances, and what counts as large.
func (s *Settings) drawTurnLimits(d chance) {
	if d.yes(0.2) {
		s.PendingBytes = int64(d.limit(1, 300, 3000))
	}
	if d.yes(0.2) {
		s.InboxBytes = d.limit(1, 2000, 20000)
	}
	if d.yes(0.3) {
		s.LargeMessage = d.limit(1, 200, 3000)
	}
}

// line carries events from one part of a member to another. Events arrive in order, each after a
// delay that the seed draws. So the parts run in any order that goroutines could bring about.
// Events on a line are lost when the process stops.
type line struct {
	m    *Member
	last time.Duration // when the last event arrives; later ones arrive no earlier
}

// post lets do run in the other part. It never runs at once.
func (l *line) post(do func()) {
	w := l.m.w
	l.last = max(l.last, w.Now()+w.hop())
	l.m.later(l.last-w.Now(), do)
}

// hop draws how long an event is on its way. Most events take almost no time.
func (w *World) hop() time.Duration {
	f := w.hops.share()
	return time.Duration(f * f * f * f * float64(w.set.HopMax))
}
