package intake

import (
	"cmp"
	"time"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/protocol"
)

// count adds the commands of a batch that has its results to the load. The arrival time of a command is that of the
// first command of its batch. Failed and withdrawn commands are left out.
func count(l *fit.Load, now time.Duration, b *Batch) {
	n := uint64(b.left())
	if b.failed != nil || n == 0 {
		return
	}
	l.Commands += n
	l.Bytes += uint64(b.bytes)
	l.Blind += min(n, uint64(b.blind))
	l.Early += min(n, uint64(b.early))
	l.Waited += time.Duration(n) * (cmp.Or(b.answeredAt, now) - b.Born)
	if b.Entry.BodySize > 0 {
		l.Large++
		l.LargeBytes += uint64(b.Entry.BodySize)
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
