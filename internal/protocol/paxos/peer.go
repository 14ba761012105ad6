package paxos

import (
	"cmp"
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

func compare[T cmp.Ordered](a, b T) int { return cmp.Compare(a, b) }

// stamp turns an instant into a mark that is never 0.
func stamp(t time.Duration) uint64 { return uint64(t) + 1 }

func (s *Paxos) peer(id protocol.MemberID) *peer {
	i, ok := slices.BinarySearchFunc(s.lead.peers, id, func(p *peer, id protocol.MemberID) int { return compare(p.id, id) })
	if !ok {
		return nil
	}
	return s.lead.peers[i]
}

func (s *Paxos) active(p *peer) bool { return p.answered && s.now < p.heard+s.cfg.ElectionTimeout }

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

// gap reports whether the oldest frame in flight never arrived: the member answers a question that left
// so long after that frame, and has not seen it.
func (p *peer) gap(m *protocol.Message, said Part, long time.Duration) bool {
	return len(p.frames) > 0 && said.Hint < p.frames[0].last && m.Context > stamp(p.frames[0].sent+long)
}

// forgot reports whether the member does not have any more what it had in its memory when sending was resumed: it has started
// again, and its disk did not have it. It answers a question that left after that. Nothing is in flight that could tell.
func (p *peer) forgot(m *protocol.Message, said Part) bool {
	return len(p.frames) == 0 && p.match < p.next-1 && said.Hint < p.next-1 && p.resumed > 0 && m.Context > p.resumed
}

// resume goes on sending behind what the member says that it has in its memory.
func (p *peer) resume(said Part, now time.Duration) {
	p.restart(max(said.Hint, p.match) + 1)
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

// depth is how many frames may be in flight. Two are enough where a round trip is short: one is on its way
// while the other is acknowledged, and what is proposed meanwhile gathers. On a long link they must follow
// each other to fill it.
func (s *Paxos) depth(p *peer) int {
	if d := s.cfg.PipelineDepth; d > 0 {
		return d
	}
	return s.lead.relays.depth(p, min(maxDepth, max(minDepth, int(p.trip/perFrame))))
}

// replicate sends a peer what it lacks, as far as its window allows, and else what is decided.
func (s *Paxos) replicate(p *peer) {
	for !p.lost && !s.streaming[p.id] {
		if p.next <= s.log.Base {
			s.sendSnapshot(p.id)
			return
		}
		if p.next > s.prop.end {
			if p.toldTo < s.log.Last() {
				s.sendAccept(p, nil)
			}
			return
		}
		if len(p.frames) >= s.depth(p) || s.waits(p) {
			return
		}
		f := s.frameAfter(p.next-1, s.lead.relays.stop(p, s.lead.peers, s.prop.end))
		if len(p.frames) > 0 && p.bytes+f.bytes > s.cfg.MaxInflightBytes {
			return
		}
		p.next += protocol.Index(len(f.entries))
		p.frames, p.bytes = append(p.frames, flight{last: p.next - 1, bytes: f.bytes, sent: s.now}), p.bytes+f.bytes
		s.sendAccept(p, f.entries)
	}
}

// frameAfter is the frame with the entries after a slot, of those up to an end.
func (s *Paxos) frameAfter(after, end protocol.Index) frame {
	if f := &s.lead.frame; f.after == after && f.end == end && f.entries != nil {
		return *f
	}
	f := frame{after: after, end: end}
	if after < s.log.Last() {
		f.entries = s.log.Run(after, s.cfg.MaxFrameBytes, s.cfg.MaxFrameEntries)
		f.entries = f.entries[:min(len(f.entries), int(end-after))]
	}
	for i := range f.entries {
		f.bytes += f.entries[i].Bytes()
	}
	for i := after + 1 + protocol.Index(len(f.entries)); i > s.log.Last() && i <= end; i++ {
		e := s.acc.votes[i].entry
		if n := len(f.entries); n > 0 && (f.bytes+e.Bytes() > s.cfg.MaxFrameBytes || n == s.cfg.MaxFrameEntries) {
			break
		}
		f.entries, f.bytes = append(f.entries, e), f.bytes+e.Bytes()
	}
	s.lead.frame = f
	return f
}

// sendAccept sends entries, or only what is decided, which is not answered.
func (s *Paxos) sendAccept(p *peer, entries []protocol.Entry) {
	p.toldTo = s.log.Last()
	send := s.send
	if s.cfg.NoParallelAppend {
		send = s.release
	}
	m := send(p.id, MsgAccept, Part{Ballot: s.ballot})
	if m.Entries = entries; len(entries) > 0 {
		m.Context = stamp(s.now)
	}
}

func (s *Paxos) unreachable(id protocol.MemberID) {
	if p := s.peer(id); p != nil && len(p.frames) > 0 {
		p.lose(s.now)
	}
	s.stranded(id)
}

// unsendable asks for a snapshot in place of entries that are in the log and cannot be read.
func (s *Paxos) unsendable(in protocol.Unsendable) {
	if p := s.peer(in.Member); s.role != protocol.Leader || p == nil || p.match < in.Index {
		s.sendSnapshot(in.Member)
	}
}
