package intake

import (
	"cmp"
	"time"

	"github.com/braidlog/braid/protocol"
)

// Asked sums up the commands of this member's clients that were answered. Its fields are those of fit.Load.
type Asked struct {
	Commands uint64
	Bytes    uint64 // of commands and their bodies
	// Blind are those commands that may take a lane, also where the core has no lanes.
	Blind             uint64
	Early             uint64 // blind ones that ask to be answered when they are accepted
	Large, LargeBytes uint64 // commands with a body, and the bytes of their bodies
	// Waited is the sum of the times until the answers. A command counts as if it had come with the first one of its
	// batch.
	Waited time.Duration
}

// Count adds a batch that is settled now. Commands that failed, or were withdrawn, do not count.
func (a *Asked) Count(now time.Duration, b *Batch) {
	n := uint64(b.left())
	if b.failed != nil || n == 0 {
		return
	}
	a.Commands += n
	a.Bytes += uint64(b.bytes)
	a.Blind += min(n, uint64(b.blind))
	a.Early += min(n, uint64(b.early))
	a.Waited += time.Duration(n) * (cmp.Or(b.AnsweredAt, now) - b.Born)
	if b.Entry.BodySize > 0 {
		a.Large++
		a.LargeBytes += uint64(b.Entry.BodySize)
	}
}

// noteBlind notes that a command with these options was added, if it may take a lane.
func (b *Batch) noteBlind(o *protocol.ProposeOptions) {
	if o.Blind || o.Mode == protocol.ModeAccepted {
		b.blind++
	}
	if o.Mode == protocol.ModeAccepted {
		b.early++
	}
}
