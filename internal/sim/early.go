package sim

import (
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/protocol"
)

// Where the protocol answers before commands are applied, some writes ask for that. Such an answer
// promises that the write takes effect once, whatever happens then.

// earlyWrites draws which writes ask for an early answer, and what tokens are used for.
var earlyWrites = draw.New("early writes")

// drawEarly chooses how many writes ask for an early answer, and how many of the others may take
// another way than through the leader.
func (s *Settings) drawEarly(d draw.Chance) {
	if s.Protocol.Core.Proposing.Accepted && d.Yes(0.6) {
		s.Load.Early = d.Share()
	}
	if s.Protocol.Core.Proposing.Path != nil && d.Yes(0.9) {
		s.Load.Blind = d.Share()
		if d.Yes(0.25) { // what is accepted meets members that change
			s.Load.Early = 0.6 + 0.4*d.Share()
			s.Faults[faultChange] = s.Election * time.Duration(3+d.Below(6))
		}
	}
}

// writeOptions is what a client asks for beside a write; nil: nothing. Who compares and swaps wants to
// know what became of it, and who looks whether all goes on wants to see it.
func writeOptions(w *World, op *history.Operation) *protocol.ProposeOptions {
	l := &w.set.Load
	if w.set.Keyed || w.set.ByKey() {
		return &protocol.ProposeOptions{Keys: drawKeys(w, op.Key)}
	}
	if l.Early+l.Blind == 0 || w.Calm {
		return nil
	}
	o := protocol.ProposeOptions{After: drawAfter(w, op)}
	switch {
	case op.Kind == check.Swap:
	case l.Early > 0 && w.From(earlyWrites).Yes(l.Early):
		o.Mode = protocol.ModeAccepted
	case l.Blind > 0 && w.From(earlyWrites).Yes(l.Blind):
		o.Blind = true
	}
	if o.Plain() {
		return nil
	}
	return &o
}
