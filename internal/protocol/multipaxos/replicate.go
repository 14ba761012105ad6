package multipaxos

import (
	"cmp"
	"slices"

	"github.com/braidlog/braid/protocol"
)

func (s *Paxos) peer(id protocol.MemberID) *peer {
	i, ok := slices.BinarySearchFunc(s.lead.peers, id, func(p *peer, id protocol.MemberID) int { return cmp.Compare(p.id, id) })
	if !ok {
		return nil
	}
	return s.lead.peers[i]
}

func (s *Paxos) active(p *peer) bool { return p.answered && s.now < p.heard+s.cfg.ElectionTimeout }

// depth is how many frames may be in flight to a peer.
func (s *Paxos) depth(p *peer) int {
	if d := s.cfg.PipelineDepth; d > 0 {
		return d
	}
	return s.lead.relays.depth(p, p.depth())
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
