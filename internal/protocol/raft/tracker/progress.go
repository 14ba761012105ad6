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

	window
	// Hold: no frame fits the window until the leader has appended that many bytes in its term, or an
	// answer came. So no frame is built without success for each proposal.
	Hold uint64

	Bodies Bodies

	// Raw: of lanes' groups up to here it gets all, and not signals.
	Raw protocol.Index

	// Told is the highest commit index sent in this phase, Latest the last Append.
	Told   protocol.Index
	Latest message.Message
	// Awaits is the last entry whose commitment the member may wait for: it proposed the entry, or the entry is no
	// command, or this leader does not know.
	Awaits protocol.Index
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

// Find returns what is known of a member, nil if it is not among the peers.
func Find(peers []*Progress, id protocol.MemberID) *Progress {
	for _, p := range peers {
		if p.ID == id {
			return p
		}
	}
	return nil
}

// Become starts a phase. It forgets what was in flight.
func (p *Progress) Become(ph Phase, next protocol.Index, now time.Duration) {
	p.Phase, p.Next, p.Began = ph, max(next, p.Match+1), message.Stamp(now)
	p.frames, p.bytes, p.small = p.frames[:0], 0, 0
	p.Paused, p.Told, p.Hold, p.Bodies.Filling = false, 0, 0, Filling{}
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
		p.Bodies.Applied = m.Commit
	}
	switch appended := m.Type == message.AppendResp && !m.Reject; {
	case m.Type == message.HeartbeatResp, appended && shaped:
		// What it said before it had all that it acknowledged since says less.
		p.Bodies.Lacking = m.Lacking || p.Bodies.Lacking && m.Index < p.Match
		p.Bodies.Partial, p.Bodies.Restripes = m.Partial, m.Restripes
	case appended: // that does not say how far it had applied the log, so it can only say that it has less
		p.Bodies.Lacking = p.Bodies.Lacking || m.Lacking
		p.Bodies.Partial, p.Bodies.Restripes = max(p.Bodies.Partial, m.Partial), min(p.Bodies.Restripes, m.Restripes)
	}
	if m.Context <= message.Stamp(now) {
		p.Confirmed = max(p.Confirmed, m.Context)
	}
}

// Disown stops counting a member that says it lost what it had acknowledged. last is the end of the log.
func (p *Progress) Disown(last protocol.Index, now time.Duration) {
	p.Match = 0
	p.Become(Probe, last+1, now)
	p.Forgot, p.Bodies.Lacking, p.Bodies.Held, p.Bodies.Whole = true, true, nil, 0
	p.Bodies.Partial, p.Heard, p.Confirmed, p.Round = math.MaxUint8, 0, 0, 0
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
