package sim

import (
	"fmt"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/protocol"
)

// What cores say from which index on a read may be served. That is judged for each read, whatever its
// client would see: an entry that no client wrote, as the first of a new leader, must not be missing
// either.

// readPoints is, for a read that was asked for and has no answer yet, how much was decided then.
type readPoints map[uint64]uint64

// asks notes a read. It is called before the core is stepped, because an answer may come at once.
func (c *witness) asks(in protocol.Input) {
	if r, ok := in.(protocol.Read); ok && r.Context != 0 {
		if c.reads == nil {
			c.reads = readPoints{}
		}
		if _, again := c.reads[r.Context]; !again { // a read that was lost or refused is asked for again
			c.reads[r.Context] = c.s.judges.MustSee
		}
	}
}

// judgeReads judges the answers of a step.
func (c *witness) judgeReads(out *protocol.Effects) error {
	for _, r := range out.Reads {
		least, asked := c.reads[r.Context]
		delete(c.reads, r.Context)
		if asked && uint64(r.Index) < least && !c.s.judges.Ended && !c.m.w.set.byKey() {
			return fmt.Errorf("a read may be served at %d, and %d was decided when it was asked for", r.Index, least)
		}
	}
	return nil
}

// askReplaced lets clients read at members that believe that they lead, when another one has decided
// something in a later term. It asks once in a term.
func (w *World) askReplaced(s *memberInstance) {
	c := s.judges
	if w.calm || w.set.Faults[faultHold]+w.set.Faults[faultPromise] == 0 || c.ReadIn >= s.witness.status.Term {
		return
	}
	c.ReadIn = s.witness.status.Term
	for _, m := range w.upAnd((*Member).replaced) {
		w.comesTo(m, check.Get, machine.KeyName(0), 0)
	}
}
