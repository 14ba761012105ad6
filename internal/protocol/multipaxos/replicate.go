package multipaxos

import (
	"cmp"
	"slices"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/protocol"
)

func (l *leading) peer(id protocol.MemberID) *paxos.Peer {
	i, ok := slices.BinarySearchFunc(l.peers, id,
		func(p *paxos.Peer, id protocol.MemberID) int { return cmp.Compare(p.ID, id) })
	if !ok {
		return nil
	}
	return l.peers[i]
}

func (s *Paxos) active(p *paxos.Peer) bool {
	return p.Answered && s.now < p.Heard+s.cfg.ElectionTimeout
}

// depth is how many frames may be in flight to a peer.
func (s *Paxos) depth(p *paxos.Peer) int {
	if d := s.cfg.PipelineDepth; d > 0 {
		return d
	}
	return s.lead.relays.Depth(p, p.Depth())
}

// replicate sends a peer missing entries, as far as its window allows, and otherwise the commit index.
func (s *Paxos) replicate(p *paxos.Peer) {
	for !p.Lost && !s.streaming[p.ID] {
		if p.Next <= s.log.Base {
			s.sendSnapshot(p.ID)
			return
		}
		if p.Next > s.prop.End {
			if p.CommitSent < s.log.Last() {
				s.sendAccept(p, nil)
			}
			return
		}
		if len(p.Frames) >= s.depth(p) || s.waitsForGroup(p) {
			return
		}
		f := s.frameAfter(p.Next-1, s.lead.relays.FrameEnd(p, s.lead.peers, s.prop.End))
		if len(p.Frames) > 0 && p.Bytes+f.Bytes > s.cfg.MaxInflightBytes {
			return
		}
		p.Next += protocol.Index(len(f.Entries))
		p.Frames, p.Bytes = append(p.Frames, paxos.Flight{Last: p.Next - 1, Bytes: f.Bytes, Sent: s.now}), p.Bytes+f.Bytes
		s.sendAccept(p, f.Entries)
	}
}

// frameAfter returns the entries after a slot, up to an end, as one frame.
func (s *Paxos) frameAfter(after, end protocol.Index) paxos.Frame {
	if f := &s.lead.frame; f.After == after && f.End == end && f.Entries != nil {
		return *f
	}
	f := paxos.Frame{After: after, End: end}
	if after < s.log.Last() {
		f.Entries = s.log.Run(after, s.cfg.MaxFrameBytes, s.cfg.MaxFrameEntries)
		f.Entries = f.Entries[:min(len(f.Entries), int(end-after))]
	}
	for i := range f.Entries {
		f.Bytes += f.Entries[i].Bytes()
	}
	for i := after + 1 + protocol.Index(len(f.Entries)); i > s.log.Last() && i <= end; i++ {
		e := s.acc.Votes[i].Entry
		if n := len(f.Entries); n > 0 && (f.Bytes+e.Bytes() > s.cfg.MaxFrameBytes || n == s.cfg.MaxFrameEntries) {
			break
		}
		f.Entries, f.Bytes = append(f.Entries, e), f.Bytes+e.Bytes()
	}
	s.lead.frame = f
	return f
}

// sendAccept sends entries, or only the commit index, which is not acknowledged.
func (s *Paxos) sendAccept(p *paxos.Peer, entries []protocol.Entry) {
	p.CommitSent = s.log.Last()
	send := s.send
	if s.cfg.NoParallelAppend {
		send = s.release
	}
	m := send(p.ID, MsgAccept, Part{Ballot: s.ballot})
	if m.Entries = entries; len(entries) > 0 {
		m.Context = paxos.Stamp(s.now)
	}
}

func unreachable(s *Paxos, id protocol.MemberID) {
	if p := s.lead.peer(id); p != nil && len(p.Frames) > 0 {
		p.MarkLost(s.now)
	}
	markStranded(s, id)
}

// unsendable requests a snapshot in place of entries of the log that cannot be read.
func unsendable(s *Paxos, in protocol.Unsendable) {
	if p := s.lead.peer(in.Member); s.role != protocol.Leader || p == nil || p.Match < in.Index {
		s.sendSnapshot(in.Member)
	}
}
