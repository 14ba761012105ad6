package tracker

import (
	"math"
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
)

// Phase is how a leader treats a follower.
type Phase uint8

const (
	// Probe: not known where the logs match; one Append at a time.
	Probe Phase = iota
	// Stream: the logs match up to Match; frames follow each other within the window.
	Stream
	// Snapshot: the entries it needs are gone; it waits for a snapshot, heartbeats continue.
	Snapshot
)

func (p Phase) String() string { return [...]string{"probe", "stream", "behind"}[p] }

// Progress is the leader's view of one other member.
type Progress struct {
	ID    protocol.MemberID
	Phase Phase
	// Match: the member's disk holds our log up to here. Only grows in a term, never
	// beyond what it acknowledged; < Next.
	Match protocol.Index
	// Grown is when it last acknowledged more than was known, Level when it was last seen to miss
	// nothing.
	Grown, Level time.Duration
	// Next is the first index to send next; base < Next ≤ last+1 but in phase Snapshot.
	Next protocol.Index
	// Began is when the phase began, an instant + 1ns. Answers to what was sent before are
	// ignored; much of that may still be in a link's queue.
	Began uint64
	// Paused: in phase Probe, the probe was sent and nothing came back. It is sent again when a
	// heartbeat is answered that left after Resume (an instant + 1ns).
	Paused bool
	Resume uint64
	// Asked: a snapshot was asked for and SnapshotSent has not come. Unsent: the last one could not
	// be sent.
	Asked, Unsent bool

	// Forgot: it lost what it had acknowledged in this term, and counts for nothing any more.
	Forgot bool

	// frames are in flight, oldest first; only in phase Stream. bytes is their sum, small
	// how many of them are small.
	frames []frame
	bytes  int
	small  int
	// Hold: no frame fits the window until the leader has appended that many bytes in its term, or an
	// answer came. So no frame is built without success for each proposal.
	Hold uint64

	// Held are the forms in which its disk holds bodies of coded entries after the commit
	// index, ascending: only what it said in this term (docs/internals/craft.md, 2.3); ≤ Match.
	Held []held
	// Whole: uncommitted coded entries up to here are sent whole; Filling is what is in progress of
	// those that it has already.
	Whole   protocol.Index
	Filling Filling
	// Far: it is too far behind the others to be counted on.
	Far Far
	// Lacking: it misses bodies of committed entries. Partial and Restripes are as in protocol.Bodies.
	// So it said in this term, when it had applied the log up to Applied.
	Lacking   bool
	Partial   uint8
	Restripes uint32

	// Raw: of lanes' groups up to here it gets all, and not signals.
	Raw protocol.Index

	// Applied is how far it has applied the log, as it said last: see protocol.Tick.
	Applied protocol.Index

	// Told is the highest commit index sent in this phase, Latest the last Append.
	Told   protocol.Index
	Latest message.Message
	// Round is the highest round of leadership it confirmed.
	Round uint64
	// Heard and Confirmed are instants + 1ns, 0 for never: when it was last heard from, and when the
	// latest of our messages that it answered was sent.
	Heard, Confirmed uint64
	// Since is when this leader began to track it. Its silence counts only after an election
	// timeout from then.
	Since time.Duration
	// Trip is the shortest recent round trip, 0 if none was measured.
	Trip time.Duration
	// Leaving is the index of the configuration that no longer has this member, 0 if it is a member.
	// It gets entries until it knows that this configuration is committed, at most until LeaveBy (0:
	// not committed yet). While other instances have it, it continues to get them.
	Leaving protocol.Index
	LeaveBy time.Duration
}

// Become starts a phase. It forgets what was in flight.
func (p *Progress) Become(ph Phase, next protocol.Index, now time.Duration) {
	p.Phase, p.Next, p.Began = ph, max(next, p.Match+1), message.Stamp(now)
	p.frames, p.bytes, p.small = p.frames[:0], 0, 0
	p.Paused, p.Told, p.Hold, p.Filling = false, 0, 0, Filling{}
}

// Needs is the index after which the log may still have to be sent to it. In a stream that is
// everything that is not acknowledged. Else it is everything from the probe on.
func (p *Progress) Needs() protocol.Index {
	if p.Phase == Stream {
		return p.Match
	}
	return p.Next - 1
}

// HeardWithin reports whether it was heard from within a time.
func (p *Progress) HeardWithin(now, within time.Duration) bool {
	return p.Heard != 0 && message.Stamp(now) < p.Heard+uint64(within)
}

// Answered takes in what every answer tells. shaped: it covers the bodies of retired instances, whatever it had
// applied.
func (p *Progress) Answered(m message.Message, now time.Duration, shaped bool) {
	p.Heard = message.Stamp(now)
	if m.Type == message.HeartbeatResp {
		p.Applied = m.Commit
	}
	switch appended := m.Type == message.AppendResp && !m.Reject; {
	case m.Type == message.HeartbeatResp, appended && shaped:
		// What it said before it had all that it acknowledged since says less.
		p.Lacking = m.Lacking || p.Lacking && m.Index < p.Match
		p.Partial, p.Restripes = m.Partial, m.Restripes
	case appended: // that does not say how far it had applied the log, so it can only say that it has less
		p.Lacking = p.Lacking || m.Lacking
		p.Partial, p.Restripes = max(p.Partial, m.Partial), min(p.Restripes, m.Restripes)
	}
	if m.Context <= message.Stamp(now) {
		p.Confirmed = max(p.Confirmed, m.Context)
	}
}

// Disown stops counting a member that says it lost what it had acknowledged. last is the end of the log.
func (p *Progress) Disown(last protocol.Index, now time.Duration) {
	p.Match = 0
	p.Become(Probe, last+1, now)
	p.Forgot, p.Lacking, p.Held, p.Whole = true, true, nil, 0
	p.Partial, p.Heard, p.Confirmed, p.Round = math.MaxUint8, 0, 0, 0
}

// Measured notes a round trip. A shorter one counts at once; a longer one moves the
// estimate slowly, so that a single frame behind a slow fsync does not widen the window.
func (p *Progress) Measured(trip time.Duration) {
	if trip >= 0 {
		p.Trip = Recent(p.Trip, trip)
	}
}

// Recent is the shortest recent trip, once another one was seen; before is 0 if there was none.
func Recent(before, trip time.Duration) time.Duration {
	if before == 0 || trip < before {
		return max(trip, 1)
	}
	return before + (trip-before)/8
}

// Pause stops sending until a heartbeat is answered that left after an instant.
func (p *Progress) Pause(until time.Duration) { p.Paused, p.Resume = true, message.Stamp(until) }

// Filling is the Bodies message to a peer that is in flight.
type Filling struct {
	Last protocol.Index // of its entries; 0: none is in flight
	Sent time.Duration
}

// Far indicates whether a member is far behind, and since when.
type Far struct {
	Is bool
	// Owes is the log's end when it began. It ends when the member has all that, is near
	// again, and at Until at the earliest.
	Owes  protocol.Index
	Until time.Duration
}
