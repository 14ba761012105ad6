package node

import (
	"fmt"

	"github.com/braidlog/braid/protocol"
)

// What cores say from which index on a read may be served. That is judged for each read, whatever its
// client would see: an entry that no client wrote, as the first of a new leader, must not be missing
// either.

// readPoints is, for a read that was asked for and has no answer yet, how much was decided then.
type readPoints map[uint64]uint64

// asks notes a read. It is called before the core is stepped, because an answer may come at once.
func (c *Witness) asks(in protocol.Input) {
	if r, ok := in.(protocol.Read); ok && r.Context != 0 {
		if c.reads == nil {
			c.reads = readPoints{}
		}
		if _, again := c.reads[r.Context]; !again { // a read that was lost or refused is asked for again
			c.reads[r.Context] = c.Part.Judges.MustSee
		}
	}
}

// judgeReads judges the answers of a step.
func (c *Witness) judgeReads(out *protocol.Effects) error {
	for _, r := range out.Reads {
		least, asked := c.reads[r.Context]
		delete(c.reads, r.Context)
		if asked && uint64(r.Index) < least && !c.Part.Judges.Ended && !c.Member.Env.Set.ByKey() {
			return fmt.Errorf("a read may be served at %d, and %d was decided when it was asked for", r.Index, least)
		}
	}
	return nil
}
