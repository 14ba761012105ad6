package paxos

import (
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
)

// Peer is what a leader knows of another member.
type Peer struct {
	ID       protocol.MemberID
	Heard    time.Duration // when it last answered, or was first tracked
	Answered bool          // at all
	Promised bool          // it has promised this leader's ballot
	// Match: its disk has all slots up to here, decided or accepted under this leader's ballot. logged:
	// its log has them. Neither falls.
	Match, Logged protocol.Index
	// Next is the first slot to send next; > match.
	Next protocol.Index
	// Frames are in flight, oldest first; bytes is their sum.
	Frames []Flight
	Bytes  int
	// Lost: what was sent may be lost, or it is not known what the member has. It is found out by a
	// heartbeat that left after lostAt (an instant + 1ns).
	Lost   bool
	LostAt uint64
	// resumed is when sending went on behind what the member had in its memory, which its disk may not have (an instant + 1ns);
	// 0: it did not since what was sent last was lost.
	resumed uint64
	// CommitSent is the highest end of what is decided that it was told.
	CommitSent protocol.Index
	// LastAccept is the last Accept to it in ISS, where it was put among those that leave with the step; nil: there was none.
	LastAccept   *protocol.Message
	LastAcceptAt int
	// Round is the highest confirmation of leadership that it gave.
	Round uint64
	// MissingBodies: bodies of decided entries are missing there, as it said when it last acknowledged most.
	MissingBodies bool
	// Trip is the shortest recent round trip, 0 if none was measured.
	Trip time.Duration
	// Leaving is the index of the configuration that no longer has this member, 0 if it is a member;
	// leaveBy is until when it is sent entries all the same, 0 while the configuration is not settled.
	Leaving protocol.Index
	LeaveBy time.Duration
}

// Flight is an Accept in flight.
type Flight struct {
	Last  protocol.Index
	Bytes int
	Sent  time.Duration
	Relay protocol.MemberID // the relay that passes it on; 0: none
}

// Frame is a run of entries after a slot, as one message takes them.
type Frame struct {
	After, End protocol.Index
	Entries    []protocol.Entry
	Bytes      int
}

// Stamp turns an instant into a mark that is never 0.
func Stamp(t time.Duration) uint64 { return uint64(t) + 1 }

func (p *Peer) MarkHeard(now time.Duration) { p.Heard, p.Answered = now, true }

// RecordPromise takes in what the member said when it promised.
func (p *Peer) RecordPromise(a *Request, decided protocol.Index) {
	p.Promised = true
	p.Acknowledge(a.MissingBodies, a.Decided, decided)
}

// Acknowledge takes in that the member has all slots up to match, at most to a limit.
func (p *Peer) Acknowledge(lacking bool, match, most protocol.Index) {
	if match = min(match, most); match < p.Match {
		return // it is older than what is known
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

// Gap reports whether the oldest frame in flight never arrived: the member has everything up to reach, and answers a
// question that was asked at an instant, more than long after that frame was sent.
func (p *Peer) Gap(asked uint64, reach protocol.Index, long time.Duration) bool {
	return len(p.Frames) > 0 && reach < p.Frames[0].Last && asked > Stamp(p.Frames[0].Sent+long)
}

// Forgot reports whether the member does not have any more what it had in its memory when sending was resumed: it has started
// again, and its disk did not have it. It answers a question that left after that. Nothing is in flight that could tell.
func (p *Peer) Forgot(asked uint64, reach protocol.Index) bool {
	return len(p.Frames) == 0 && p.Match < p.Next-1 && reach < p.Next-1 && p.resumed > 0 && asked > p.resumed
}

// Resume goes on sending after reach, up to which the member has everything in its memory.
func (p *Peer) Resume(reach protocol.Index, now time.Duration) {
	p.Restart(max(reach, p.Match) + 1)
	p.resumed = Stamp(now)
}

// Restart goes on sending from a slot on. What is in flight does not count any more.
func (p *Peer) Restart(next protocol.Index) {
	p.Next, p.Lost, p.CommitSent, p.resumed = next, false, 0, 0
	p.Frames, p.Bytes = p.Frames[:0], 0
}

// MarkLost: what was sent may be lost.
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

// RecordTrip notes a round trip. A shorter one counts at once; a longer one moves the estimate slowly.
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
	// perFrame is about what a frame costs at both ends together. More than trip/perFrame frames in
	// flight do not keep anybody busier.
	perFrame = 200 * time.Microsecond
	minDepth = 2
	MaxDepth = 64
)

// SetRelay notes which relay brings a peer the frame that ends with a slot.
func (p *Peer) SetRelay(relay protocol.MemberID, last protocol.Index) {
	for i := range p.Frames {
		if f := &p.Frames[i]; f.Last >= last {
			f.Relay = relay
			return
		}
	}
}

// Uses reports whether something is on its way to the peer by a relay.
func (p *Peer) Uses(relay protocol.MemberID) bool {
	return slices.ContainsFunc(p.Frames, func(f Flight) bool { return f.Relay == relay })
}

// Depth is how many frames may be in flight. Two are enough where a round trip is short: one is on its way
// while the other is acknowledged, and what is proposed meanwhile gathers. On a long link they must follow
// each other to fill it.
func (p *Peer) Depth() int { return min(MaxDepth, max(minDepth, int(p.Trip/perFrame))) }
