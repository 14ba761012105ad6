package multipaxos

import (
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
)

// peer is what a leader knows of another member.
type peer struct {
	id       protocol.MemberID
	heard    time.Duration // when it last answered, or was first tracked
	answered bool          // at all
	promised bool          // it has promised this leader's ballot
	// match: its disk has all slots up to here, decided or accepted under this leader's ballot. logged:
	// its log has them. Neither falls.
	match, logged protocol.Index
	// next is the first slot to send next; > match.
	next protocol.Index
	// frames are in flight, oldest first; bytes is their sum.
	frames []flight
	bytes  int
	// lost: what was sent may be lost, or it is not known what the member has. It is found out by a
	// heartbeat that left after lostAt (an instant + 1ns).
	lost   bool
	lostAt uint64
	// resumed is when sending went on behind what the member had in its memory, which its disk may not have (an instant + 1ns);
	// 0: it did not since what was sent last was lost.
	resumed uint64
	// toldTo is the highest end of what is decided that it was told.
	toldTo protocol.Index
	// said is the last Accept to it in ISS, where it was put among those that leave with the step; nil: there was none.
	said   *protocol.Message
	saidAt int
	// round is the highest confirmation of leadership that it gave.
	round uint64
	// lacking: bodies of decided entries are missing there, as it said when it last acknowledged most.
	lacking bool
	// trip is the shortest recent round trip, 0 if none was measured.
	trip time.Duration
	// leaving is the index of the configuration that no longer has this member, 0 if it is a member;
	// leaveBy is until when it is sent entries all the same, 0 while the configuration is not settled.
	leaving protocol.Index
	leaveBy time.Duration
}

// flight is an Accept in flight.
type flight struct {
	last  protocol.Index
	bytes int
	sent  time.Duration
	by    protocol.MemberID // the relay that passes it on; 0: none
}

// frame is a run of entries after a slot, as one message takes them.
type frame struct {
	after, end protocol.Index
	entries    []protocol.Entry
	bytes      int
}

// stamp turns an instant into a mark that is never 0.
func stamp(t time.Duration) uint64 { return uint64(t) + 1 }

func (p *peer) heardOf(now time.Duration) { p.heard, p.answered = now, true }

// promisedTo takes in what the member said when it promised.
func (p *peer) promisedTo(a *asked, decided protocol.Index) {
	p.promised = true
	p.told(a.lacking, a.decided, decided)
}

// told takes in that the member has all slots up to match, at most to a limit.
func (p *peer) told(lacking bool, match, most protocol.Index) {
	if match = min(match, most); match < p.match {
		return // it is older than what is known
	}
	p.match, p.lacking = match, lacking
	p.next = max(p.next, match+1)
	n := 0
	for n < len(p.frames) && p.frames[n].last <= match {
		p.bytes -= p.frames[n].bytes
		n++
	}
	p.frames = p.frames[:copy(p.frames, p.frames[n:])]
}

// gap reports whether the oldest frame in flight never arrived: the member has everything up to reach, and answers a
// question that was asked at an instant, more than long after that frame was sent.
func (p *peer) gap(asked uint64, reach protocol.Index, long time.Duration) bool {
	return len(p.frames) > 0 && reach < p.frames[0].last && asked > stamp(p.frames[0].sent+long)
}

// forgot reports whether the member does not have any more what it had in its memory when sending was resumed: it has started
// again, and its disk did not have it. It answers a question that left after that. Nothing is in flight that could tell.
func (p *peer) forgot(asked uint64, reach protocol.Index) bool {
	return len(p.frames) == 0 && p.match < p.next-1 && reach < p.next-1 && p.resumed > 0 && asked > p.resumed
}

// resume goes on sending after reach, up to which the member has everything in its memory.
func (p *peer) resume(reach protocol.Index, now time.Duration) {
	p.restart(max(reach, p.match) + 1)
	p.resumed = stamp(now)
}

// restart goes on sending from a slot on. What is in flight does not count any more.
func (p *peer) restart(next protocol.Index) {
	p.next, p.lost, p.toldTo, p.resumed = next, false, 0, 0
	p.frames, p.bytes = p.frames[:0], 0
}

// lose: what was sent may be lost.
func (p *peer) lose(now time.Duration) {
	p.restart(p.match + 1)
	p.lost, p.lostAt = true, stamp(now)
}

// needs is the index after which entries may still have to be sent to it.
func (p *peer) needs() protocol.Index {
	if p.lost {
		return p.match
	}
	return min(p.match, p.next-1)
}

// measured notes a round trip. A shorter one counts at once; a longer one moves the estimate slowly.
func (p *peer) measured(trip time.Duration) {
	switch {
	case trip < 0:
	case p.trip == 0 || trip < p.trip:
		p.trip = max(trip, 1)
	default:
		p.trip += (trip - p.trip) / 8
	}
}

const (
	// perFrame is about what a frame costs at both ends together. More than trip/perFrame frames in
	// flight do not keep anybody busier.
	perFrame = 200 * time.Microsecond
	minDepth = 2
	maxDepth = 64
)

// sentBy notes which relay brings a peer the frame that ends with a slot.
func (p *peer) sentBy(relay protocol.MemberID, last protocol.Index) {
	for i := range p.frames {
		if f := &p.frames[i]; f.last >= last {
			f.by = relay
			return
		}
	}
}

// strands reports whether something is on its way to the peer by a relay.
func (p *peer) strands(relay protocol.MemberID) bool {
	return slices.ContainsFunc(p.frames, func(f flight) bool { return f.by == relay })
}

// depth is how many frames may be in flight. Two are enough where a round trip is short: one is on its way
// while the other is acknowledged, and what is proposed meanwhile gathers. On a long link they must follow
// each other to fill it.
func (p *peer) depth() int { return min(maxDepth, max(minDepth, int(p.trip/perFrame))) }
