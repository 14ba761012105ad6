package sim

import (
	"math/rand/v2"
	"time"
)

// lineStream is for what happens between the machines of a member what stream is for everything else.
const lineStream = stream + 17

// drawLines chooses how long events take at most from one machine of a member to another.
func (s *Settings) drawLines(d dice) {
	if d.yes(0.6) {
		s.HopMax = d.duration(0, s.Heartbeat/2)
	}
}

// line carries events from one machine of a member to another: in order, each after a delay that
// the seed draws, so that machines meet in whatever order goroutines could bring about. What a
// line carries is lost when the process stops.
type line struct {
	m    *Member
	last time.Duration // when the last event arrives: those after it come no earlier
}

// post has do run on the other machine. It never runs at once.
func (l *line) post(do func()) {
	w := l.m.w
	l.last = max(l.last, w.now+w.hop())
	l.m.later(l.last-w.now, do)
}

// hop draws how long an event is on its way; most take next to nothing.
func (w *World) hop() time.Duration {
	f := w.hops.share()
	return time.Duration(f * f * f * f * float64(w.set.HopMax))
}

func newHops(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed^0x5bd1e995, lineStream))} }
