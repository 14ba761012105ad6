package paxos

import (
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
)

// Peer is a proposer's view of another member.
type Peer struct {
	ID       protocol.MemberID
	Heard    time.Duration // when it last answered, or was first tracked
	Answered bool          // at all
	Promised bool          // it has promised this leader's ballot
	// Match is the last slot up to which its disk has everything, decided or accepted under this leader's ballot,
	// and Logged the last one of its log. Neither falls.
	Match, Logged protocol.Index
	// Next is the next slot to send; > Match.
	Next protocol.Index
	// Frames are in flight, oldest first; Bytes is their sum.
	Frames []Flight
	Bytes  int
	// Lost: what was sent may be lost, or it is not known what the member has. The answer to a heartbeat that was sent
	// after LostAt (an instant + 1 ns) shows it.
	Lost   bool
	LostAt uint64
	// resumed is when sending continued after what the member had in memory, which its disk may not have (an instant
	// + 1 ns); 0: it has not since the last loss.
	resumed uint64
	// CommitSent is the highest last decided slot that was sent to it.
	CommitSent protocol.Index
	// LastAccept is the last Accept to it in ISS, and LastAcceptAt its place among the step's messages; nil: there
	// was none.
	LastAccept   *protocol.Message
	LastAcceptAt int
	// Round is the highest confirmation of leadership that it gave.
	Round uint64
	// MissingBodies: bodies of decided entries are missing there, as of its acknowledgement of Match.
	MissingBodies bool
	// Trip is the shortest recent round trip, 0 if none was measured.
	Trip time.Duration
	// Leaving is the index of the configuration that no longer has this member, 0 if it is a member. LeaveBy is until
	// when it is sent entries all the same, 0 while the configuration is not resolved.
	Leaving protocol.Index
	LeaveBy time.Duration
}

// Flight is an Accept in flight.
type Flight struct {
	Last  protocol.Index
	Bytes int
	Sent  time.Duration
	Relay protocol.MemberID // the relay that forwards it; 0: none
}

// Frame is a run of entries after a slot, as one message takes them.
type Frame struct {
	After, End protocol.Index
	Entries    []protocol.Entry
	Bytes      int
}

// Stamp encodes an instant as a number that is never 0.
func Stamp(t time.Duration) uint64 { return uint64(t) + 1 }

func (p *Peer) MarkHeard(now time.Duration) { p.Heard, p.Answered = now, true }

// RecordPromise records the member's promise.
func (p *Peer) RecordPromise(a *Request, decided protocol.Index) {
	p.Promised = true
	p.Acknowledge(a.MissingBodies, a.Decided, decided)
}

// Acknowledge records that the member has all slots up to match, at most up to a limit.
func (p *Peer) Acknowledge(lacking bool, match, most protocol.Index) {
	if match = min(match, most); match < p.Match {
		return // it is older than the last one
	}
	p.Match, p.MissingBodies = match, lacking
	p.Next = max(p.Next, match+1)
	n := 0
	for n < len(p.Frames) && p.Frames[n].Last <= match {
		p.Bytes -= p.Frames[n].Bytes
		n++
	}
	p.Frames = p.Frames[:copy(p.Frames, p.Frames[n:])]
}

// Gap reports whether the oldest frame in flight was lost: the member has everything up to reach, and answers a
// heartbeat that was sent more than long after that frame.
func (p *Peer) Gap(asked uint64, reach protocol.Index, long time.Duration) bool {
	return len(p.Frames) > 0 && reach < p.Frames[0].Last && asked > Stamp(p.Frames[0].Sent+long)
}

// Forgot reports whether the member no longer has what it had in memory when sending was resumed: it has restarted,
// and its disk did not have it. It answers a heartbeat that was sent after that. No frame is in flight that would
// show the loss.
func (p *Peer) Forgot(asked uint64, reach protocol.Index) bool {
	return len(p.Frames) == 0 && p.Match < p.Next-1 && reach < p.Next-1 && p.resumed > 0 && asked > p.resumed
}

// Resume continues sending after reach, up to which the member has everything in memory.
func (p *Peer) Resume(reach protocol.Index, now time.Duration) {
	p.Restart(max(reach, p.Match) + 1)
	p.resumed = Stamp(now)
}

// Restart continues sending from a slot on. Frames in flight do not count any more.
func (p *Peer) Restart(next protocol.Index) {
	p.Next, p.Lost, p.CommitSent, p.resumed = next, false, 0, 0
	p.Frames, p.Bytes = p.Frames[:0], 0
}

// MarkLost handles a possible loss of what was sent.
func (p *Peer) MarkLost(now time.Duration) {
	p.Restart(p.Match + 1)
	p.Lost, p.LostAt = true, Stamp(now)
}

// Needs is the index after which entries may still have to be sent to it.
func (p *Peer) Needs() protocol.Index {
	if p.Lost {
		return p.Match
	}
	return min(p.Match, p.Next-1)
}

// RecordTrip records a round trip. A shorter one counts at once; a longer one moves the estimate slowly.
func (p *Peer) RecordTrip(trip time.Duration) {
	switch {
	case trip < 0:
	case p.Trip == 0 || trip < p.Trip:
		p.Trip = max(trip, 1)
	default:
		p.Trip += (trip - p.Trip) / 8
	}
}

const (
	// perFrame is the approximate cost of a frame at both ends together. More than trip/perFrame frames in flight do not
	// raise the throughput.
	perFrame = 200 * time.Microsecond
	minDepth = 2
	MaxDepth = 64
)

// SetRelay records the relay of the frame that ends with a slot.
func (p *Peer) SetRelay(relay protocol.MemberID, last protocol.Index) {
	for i := range p.Frames {
		if f := &p.Frames[i]; f.Last >= last {
			f.Relay = relay
			return
		}
	}
}

// Uses reports whether a frame is in flight to the peer through a relay.
func (p *Peer) Uses(relay protocol.MemberID) bool {
	return slices.ContainsFunc(p.Frames, func(f Flight) bool { return f.Relay == relay })
}

// Depth limits the frames in flight. Two are enough where a round trip is short: one is in flight while the other
// is acknowledged, and proposals gather meanwhile. On a long link they must follow each other to fill it.
func (p *Peer) Depth() int { return min(MaxDepth, max(minDepth, int(p.Trip/perFrame))) }
