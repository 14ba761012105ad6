package sim

import (
	"time"

	"github.com/braidlog/braid/internal/sim/draw"
)

// hops draws how long events take from one part of a member to another.
var hops = draw.New("hops")

// drawLines chooses how long events take at most from one part of a member to another.
func (s *Settings) drawLines(d draw.Chance) {
	if d.Yes(0.6) {
		s.HopMax = d.Duration(0, s.Heartbeat/2)
	}
}

// drawTurnLimits chooses how much may wait for instances, and what counts as large.
func (s *Settings) drawTurnLimits(d draw.Chance) {
	if d.Yes(0.2) {
		s.PendingBytes = int64(d.Limit(1, 300, 3000))
	}
	if d.Yes(0.2) {
		s.InboxBytes = d.Limit(1, 2000, 20000)
	}
	if d.Yes(0.3) {
		s.LargeMessage = d.Limit(1, 200, 3000)
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
	f := w.From(hops).Share()
	return time.Duration(f * f * f * f * float64(w.set.HopMax))
}
