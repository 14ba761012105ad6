package node

import (
	"time"

	"github.com/braidlog/braid/internal/sim/draw"
)

// hops draws the delay of events between parts of a member.
var hops = draw.New("hops")

// line carries events from one part of a member to another. Events arrive in order, each after a delay that the seed
// draws. So the parts run in any order that is possible with goroutines. Events on a line are lost when the process
// stops.
type line struct {
	m    *Member
	last time.Duration // when the last event arrives; later ones arrive no earlier
}

// post runs do in the other part, never synchronously.
func (l *line) post(do func()) {
	w := l.m.Env
	l.last = max(l.last, w.Now()+w.hop())
	l.m.Later(l.last-w.Now(), do)
}

// hop draws the delay of an event. It is almost 0 for most events.
func (w *Environment) hop() time.Duration {
	f := w.From(hops).Share()
	return time.Duration(f * f * f * f * float64(w.Set.HopMax))
}
