package node

import (
	"fmt"

	"github.com/braidlog/braid/protocol"
)

// The read indexes of cores. They are judged for each read, whatever its client would see: an entry that no client
// wrote, like the first one of a new leader, must not be missing either.

// readPoints is, for a pending read, the decided index when it was requested.
type readPoints map[uint64]uint64

// asks records a read. It is called before the core is stepped, because the answer may be immediate.
func (c *Witness) asks(in protocol.Input) {
	if r, ok := in.(protocol.Read); ok && r.Context != 0 {
		if c.reads == nil {
			c.reads = readPoints{}
		}
		if _, again := c.reads[r.Context]; !again { // a read that was lost or refused is requested again
			c.reads[r.Context] = c.Part.Judges.MustSee
		}
	}
}

// judgeReads checks the read indexes of a step.
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
