package tracker

import (
	"cmp"
	"math"
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
)

// window is what is in flight to a member.
type window struct {
	// frames are in flight, oldest first; only in phase Stream. bytes is their sum, small
	// how many of them are small.
	frames []frame
	bytes  int
	small  int
}

// frame is an Append in flight.
type frame struct {
	last  protocol.Index
	bytes int
	sent  time.Duration
	small bool
}

const (
	// LargeFrame: frames from this size on are bounded by bytes only.
	LargeFrame = 64 << 10
	// perFrame is about what a frame costs at both ends together. More than trip/perFrame frames
	// in flight do not raise the throughput.
	perFrame = 200 * time.Microsecond
	minDepth = 2
	// maxDepth bounds depth.
	maxDepth = 64
)

// Sent notes that a frame was sent that ends with last.
func (p *Progress) Sent(last protocol.Index, bytes int, small bool, now time.Duration) {
	p.frames = append(p.frames, frame{last: last, bytes: bytes, sent: now, small: small})
	p.bytes += bytes
	if small {
		p.small++
	}
	p.Next = last + 1
}

// Landed drops the frames up to match from those in flight.
func (p *Progress) Landed(match protocol.Index) {
	n := 0
	for n < len(p.frames) && p.frames[n].last <= match {
		p.bytes -= p.frames[n].bytes
		if p.frames[n].small {
			p.small--
		}
		n++
	}
	if n > 0 {
		p.frames = p.frames[:copy(p.frames, p.frames[n:])]
		p.Hold = 0
	}
}

// Extend adds entries to the newest frame in flight, and reports whether that and the window have space for them.
func (p *Progress) Extend(s *protocol.Settings, entries, bytes int) bool {
	f := &p.frames[len(p.frames)-1]
	if f.bytes+bytes > s.MaxFrameBytes || p.bytes+bytes > s.MaxInflightBytes {
		return false
	}
	p.Next += protocol.Index(entries)
	f.last, f.bytes, p.bytes = p.Next-1, f.bytes+bytes, p.bytes+bytes
	return true
}

// InFlight is how many frames are in flight.
func (p *Progress) InFlight() int { return len(p.frames) }

// InflightBytes is the bytes of the frames in flight.
func (p *Progress) InflightBytes() int { return p.bytes }

// queuedShare: more in flight than the window divided by it may keep a slow link busy for long.
const queuedShare = 128

// Queued reports whether so much is in flight that the next message in the stream may arrive late.
func (p *Progress) Queued(s *protocol.Settings) bool { return p.bytes > s.MaxInflightBytes/queuedShare }

// Lost reports whether the oldest frame in flight never arrived: the follower answers a question
// that left well after that frame, and has not seen it.
func (p *Progress) Lost(m message.Message, heartbeat time.Duration) bool {
	return len(p.frames) > 0 && m.Hint < p.frames[0].last &&
		m.Context > message.Stamp(p.frames[0].sent+heartbeat)
}

// MustHold returns 0 if the window has space for a frame, else when to look again; see
// Progress.Hold. One frame may always be in flight. A small one waits for what is proposed
// meanwhile, which makes it larger. Where each entry is a frame of its own none gets larger, so
// none waits before the window is full. appended is what the leader has appended in its term.
func (p *Progress) MustHold(s *protocol.Settings, appended uint64, bytes int, small bool) uint64 {
	gathers, most := s.MaxFrameEntries != 1, s.PipelineDepth
	if !gathers {
		most = cmp.Or(most, maxDepth)
	}
	switch {
	case len(p.frames) == 0:
		return 0
	case p.bytes+bytes > s.MaxInflightBytes, small && most > 0 && p.small >= most:
		return math.MaxUint64 // only an answer makes space
	case small && gathers && p.small >= p.depth():
		return appended + uint64(LargeFrame-bytes) // large frames are not counted
	}
	return 0
}

// depth is how many small frames may be in flight while the next one can still grow. It is not
// asked where each entry is a frame of its own. A setting may allow fewer.
//
// Two are enough where a round trip is short: one is in flight or waits for the disk while the
// other is being acknowledged; what is proposed meanwhile gathers and leaves as one frame as soon
// as an answer comes, so batches grow on their own with the load. More frames would only be smaller
// ones, and a frame costs far more than an entry. On a long link (a wide area network) frames must
// follow each other to fill it. The trip is measured by heartbeats, which wait for no disk, and by
// appends only if that gives less. Otherwise a queue that this leader itself fills would look like
// a long link.
func (p *Progress) depth() int {
	return min(maxDepth, max(minDepth, int(p.Trip/perFrame)))
}
