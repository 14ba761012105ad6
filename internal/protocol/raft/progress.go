package raft

import (
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
)

// phase is how a leader treats a follower.
type phase uint8

const (
	// probe: not known where the logs match; one Append at a time.
	probe phase = iota
	// stream: the logs match up to match; frames follow each other within the window.
	stream
	// behind: the entries it needs are gone; it waits for a snapshot, heartbeats continue.
	behind
)

func (p phase) String() string { return [...]string{"probe", "stream", "behind"}[p] }

// progress is the leader's view of one other member.
type progress struct {
	id    protocol.MemberID
	phase phase
	// match: the member's disk holds our log up to here. Only grows in a term, never
	// beyond what it acknowledged; < next.
	match protocol.Index
	// grown is when it last acknowledged more than was known, level when it was last seen to miss
	// nothing.
	grown, level time.Duration
	// next is the first index to send next; base < next ≤ last+1 but in phase behind.
	next protocol.Index
	// began is when the phase began, an instant + 1ns. Answers to what was sent before are
	// ignored; much of that may still be in a link's queue.
	began uint64
	// paused: in phase probe, the probe was sent and nothing came back. It is sent again when a
	// heartbeat is answered that left after resume (an instant + 1ns).
	paused bool
	resume uint64
	// asked: a snapshot was asked for and SnapshotSent has not come. unsent: the last one could not
	// be sent.
	asked, unsent bool

	// forgot: it lost what it had acknowledged in this term, and counts for nothing any more.
	forgot bool

	// frames are in flight, oldest first; only in phase stream. bytes is their sum, small
	// how many of them are small.
	frames []frame
	bytes  int
	small  int
	// hold: no frame fits the window until the leader has appended that many bytes in its term, or an
	// answer came. So no frame is built without success for each proposal.
	hold uint64

	// held are the forms in which its disk holds bodies of coded entries after the commit
	// index, ascending: only what it said in this term (docs/internals/craft.md, 2.3); ≤ match.
	held []held
	// whole: uncommitted coded entries up to here are sent whole; filling is what is in progress of
	// those that it has already.
	whole   protocol.Index
	filling filling
	// far: it is too far behind the others to be counted on.
	far far
	// lacking: it misses bodies of committed entries. partial and restripes are as in protocol.Bodies.
	// So it said in this term, when it had applied the log up to applied.
	lacking   bool
	partial   uint8
	restripes uint32

	// raw: of lanes' groups up to here it gets all, and not signals.
	raw protocol.Index

	// applied is how far it has applied the log, as it said last: see protocol.Tick.
	applied protocol.Index

	// told is the highest commit index sent in this phase, latest the last Append.
	told   protocol.Index
	latest message.Message
	// round is the highest round of leadership it confirmed.
	round uint64
	// heard and confirmed are instants + 1ns, 0 for never: when it was last heard from, and when the
	// latest of our messages that it answered was sent.
	heard, confirmed uint64
	// since is when this leader began to track it. Its silence counts only after an election
	// timeout from then.
	since time.Duration
	// trip is the shortest recent round trip, 0 if none was measured.
	trip time.Duration
	// leaving is the index of the configuration that no longer has this member, 0 if it is a member.
	// It gets entries until it knows that this configuration is committed, at most until leaveBy (0:
	// not committed yet). While other instances have it, it continues to get them.
	leaving protocol.Index
	leaveBy time.Duration
}

// frame is an Append in flight.
type frame struct {
	last  protocol.Index
	bytes int
	sent  time.Duration
	small bool
}

func (p *progress) sent(last protocol.Index, bytes int, small bool, now time.Duration) {
	p.frames = append(p.frames, frame{last: last, bytes: bytes, sent: now, small: small})
	p.bytes += bytes
	if small {
		p.small++
	}
	p.next = last + 1
}

// landed drops the frames up to match from those in flight.
func (p *progress) landed(match protocol.Index) {
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
		p.hold = 0
	}
}

// become starts a phase. It forgets what was in flight.
func (p *progress) become(ph phase, next protocol.Index, now time.Duration) {
	p.phase, p.next, p.began = ph, max(next, p.match+1), message.Stamp(now)
	p.frames, p.bytes, p.small = p.frames[:0], 0, 0
	p.paused, p.told, p.hold, p.filling = false, 0, 0, filling{}
}

// needs is the index after which the log may still have to be sent to it. In a stream that is
// everything that is not acknowledged. Else it is everything from the probe on.
func (p *progress) needs() protocol.Index {
	if p.phase == stream {
		return p.match
	}
	return p.next - 1
}

// measured notes a round trip. A shorter one counts at once; a longer one moves the
// estimate slowly, so that a single frame behind a slow fsync does not widen the window.
func (p *progress) measured(trip time.Duration) {
	if trip >= 0 {
		p.trip = recent(p.trip, trip)
	}
}

// recent is the shortest recent trip, once another one was seen; before is 0 if there was none.
func recent(before, trip time.Duration) time.Duration {
	if before == 0 || trip < before {
		return max(trip, 1)
	}
	return before + (trip-before)/8
}

// pause stops sending until a heartbeat is answered that left after an instant.
func (p *progress) pause(until time.Duration) { p.paused, p.resume = true, message.Stamp(until) }

const (
	// largeFrame: frames from this size on are bounded by bytes only.
	largeFrame = 64 << 10
	// perFrame is about what a frame costs at both ends together. More than trip/perFrame frames
	// in flight do not keep anybody busier.
	perFrame = 200 * time.Microsecond
	minDepth = 2
	maxDepth = 64
)

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
func (p *progress) depth() int {
	return min(maxDepth, max(minDepth, int(p.trip/perFrame)))
}

// filling is the Bodies message to a peer that is in flight.
type filling struct {
	last protocol.Index // of its entries; 0: none is in flight
	sent time.Duration
}

// far indicates whether a member is far behind, and since when.
type far struct {
	is bool
	// owes is the log's end when it began. It ends when the member has all that, is near
	// again, and at until at the earliest.
	owes  protocol.Index
	until time.Duration
}
