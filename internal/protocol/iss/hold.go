package iss

import (
	"time"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/protocol"
)

// When a proposer's next message waits for more entries.

const (
	// mostHeld is for how long a message may wait after the last one to the same member. smallFrame is below how many
	// bytes of entries it waits at all.
	mostHeld   = time.Millisecond
	smallFrame = 64 << 10
)

// holds reports whether the next frame for a peer waits for more entries: while this member's disk writes earlier
// ones, and a frame is in flight to the peer. Most members' disks are busy then too, and a frame that comes meanwhile
// waits for the next write there. A frame costs far more than an entry, and so do the acknowledgements that it causes.
// What would be sent along waits too. Nothing waits in an epoch that is ending, nor with relays, which need equal
// frames for all members.
func (b *broadcast) holds(p *paxos.Peer) bool {
	if !b.s.writing || len(p.Frames) == 0 || b.open-p.Bytes >= smallFrame || !b.zero() || b.s.ending ||
		b.s.cfg.MaxFrameEntries == 1 || len(b.s.relays.Groups) > 0 {
		return false
	}
	until := p.Frames[len(p.Frames)-1].Sent + mostHeld
	if b.s.now >= until {
		return false
	}
	if w := &b.s.out.WakeAt; *w == 0 || *w > until {
		*w = until
	}
	return true
}

// writes reports whether the disk writes what earlier steps wanted. When a write is complete the next one begins, and
// what is sent then is in time for it elsewhere too.
func (s *ISS) writes(in protocol.Input) bool {
	_, completed := in.(protocol.Persisted)
	return !completed && s.disk.Done < s.disk.Written
}
