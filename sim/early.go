package sim

import (
	"math/rand/v2"

	"github.com/braidlog/braid/check"
	"github.com/braidlog/braid/protocol"
)

// Where the protocol answers before commands are applied, some writes ask for that. Such an answer
// promises that the write takes effect once, whatever happens then.

// earlyStream is for writes that ask for an early answer what stream is for everything else.
const earlyStream = stream + 34

// drawEarly chooses how many writes ask for an early answer.
func (s *Settings) drawEarly(d chance) {
	if s.protocol.Core.Proposing.Accepted && d.yes(0.6) {
		s.Load.Early = d.share()
	}
}

func newEarly(seed uint64) chance {
	return chance{rand.New(rand.NewPCG(seed^0x51ab7c3d, earlyStream))}
}

// options is what a client asks for beside a write; nil: nothing. Who compares and swaps wants to
// know what became of it, and who looks whether all goes on wants to see it.
func (w *World) options(op *operation) *protocol.ProposeOptions {
	if w.set.Load.Early == 0 || w.calm {
		return nil
	}
	o := protocol.ProposeOptions{After: w.drawAfter(op)}
	if op.Kind != check.Swap && w.early.yes(w.set.Load.Early) {
		o.Mode = protocol.ModeAccepted
	}
	if o.Plain() {
		return nil
	}
	return &o
}
