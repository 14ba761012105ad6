package multipaxos

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/paxos/relay"
	"github.com/braidlog/braid/protocol"
)

// Relays in multi-Paxos. Package relay has the rules.

// groupPeers builds the groups from the peers that are members.
func (l *leading) groupPeers(c *protocol.Config, groups int) {
	var ids []protocol.MemberID
	for _, p := range l.peers {
		if p.Leaving == 0 {
			ids = append(ids, p.ID)
		}
	}
	l.relays.Split(c, ids, groups)
}

// bundle replaces the step's equal messages to members of a group by one message to a relay.
func (s *Paxos) bundle(sent, released int) {
	r := &s.lead.relays
	s.out.Send = r.Bundle(s.out.Send, sent, s.now, grouper{s})
	s.out.Release = r.Bundle(s.out.Release, released, s.now, grouper{s})
}

// grouper implements [relay.Bundler] for messages of multi-Paxos.
type grouper struct{ s *Paxos }

func (r grouper) Equal(a, b *protocol.Message) bool {
	return a.Type == MsgAccept && b.Type == MsgAccept && a.Term == b.Term && a.Commit == b.Commit &&
		relay.SameEntries(a, b)
}

func (r grouper) Fit(id protocol.MemberID) bool {
	p := r.s.lead.peer(id)
	return p != nil && p.Answered && r.s.now < p.Heard+relay.Recent*r.s.cfg.Heartbeat
}

func (r grouper) Wrap(via protocol.MemberID, among []*protocol.Message) *protocol.Message {
	first := among[0]
	for _, m := range among {
		if p := r.s.lead.peer(m.To); p != nil && len(m.Entries) > 0 {
			p.SetRelay(via, relay.LastSlot(m))
		}
	}
	p := partOf(first)
	p.Members = relay.Receivers(among, via)
	m := *first
	m.Type, m.To, m.Part, m.Context = MsgRelay, via, &p, uint64(relay.LastSlot(first))
	return &m
}

// proposerOf is the member that proposed the entries of a message.
func proposerOf(m *protocol.Message, p Part) protocol.MemberID {
	if m.Type == MsgRelayed && len(p.Members) == 1 {
		return p.Members[0]
	}
	return m.From
}

// forward sends a proposer's message, which this member has accepted itself, to the others of the group.
func forward(s *Paxos, m *protocol.Message, p Part) {
	part := Part{Ballot: p.Ballot, Members: []protocol.MemberID{m.From}}
	members := make([]protocol.MemberID, 0, len(p.Members)+1)
	for _, id := range p.Members {
		if id == s.cfg.Self || id == m.From || slices.Contains(members, id) {
			continue
		}
		members = append(members, id)
		copied := *m
		copied.Type, copied.From, copied.To, copied.Part = MsgRelayed, s.cfg.Self, id, &part
		s.out.Send = append(s.out.Send, &copied)
	}
	if m.Context == 0 {
		return
	}
	g := &s.gather
	g.Begin(m.From, p.Ballot)
	g.RecordForward(relay.Forwarded{
		Last: relay.LastSlot(m), Due: s.now + patience(s), Written: s.disk.Written, Members: append(members, s.cfg.Self),
	}, s.now)
	recordOwn(s)
}

// patience is how long a relay waits for the members of its group.
func patience(s *Paxos) time.Duration { return s.cfg.Heartbeat / 2 }

// recordOwn records what this member itself accepted, as far as that is durable, and reports to the proposer if
// that is due.
func recordOwn(s *Paxos) {
	g, upto := &s.gather, s.stable()
	if g.Proposer == 0 {
		return
	}
	if g.Ballot != s.acc.Promised {
		*g = relay.Gathering{} // another member proposes
		return
	}
	if !g.Awaits(s.cfg.Self) {
		return
	}
	done := s.disk.Done
	if s.cfg.Mutant == MutantRelayEarly {
		upto, done = s.acc.Reach, s.disk.Written
	}
	g.RecordAnswer(relay.Held{ID: s.cfg.Self, Upto: upto, MissingBodies: s.bodies.Missing}, g.AnsweredUpTo(done), s.now,
		patience(s))
	s.reportGathered()
}

// reportGathered sends the proposer what was gathered for it, if that is due.
func (s *Paxos) reportGathered() {
	g := &s.gather
	if g.Proposer != 0 && g.Ballot == s.acc.Promised && g.Due(s.now) {
		s.send(g.Proposer, MsgGathered,
			Part{Ballot: g.Ballot, Held: g.Report(s.cfg.Self, s.cfg.Mutant == MutantRelayListsSilent)})
	}
}

// gatherAnswer records an answer that this member gathers for a proposer. It reports false for any other answer.
func gatherAnswer(s *Paxos, m *protocol.Message, p Part) bool {
	g := &s.gather
	if g.Proposer == 0 || g.Ballot != p.Ballot ||
		!g.RecordAnswer(relay.Held{ID: m.From, Upto: p.Slot, MissingBodies: p.Lacking}, protocol.Index(m.Context), s.now,
			patience(s)) {
		return false
	}
	s.reportGathered()
	return true
}

// onGathered handles a relay's report. Each member counts once, however often it is listed: what it has replaces
// what it had.
func onGathered(s *Paxos, m *protocol.Message, p Part) {
	if p.Ballot != s.ballot || s.role != protocol.Leader {
		return
	}
	s.lead.relays.RecordAnswer(m.From, s.now)
	var told []*paxos.Peer
	for _, h := range p.Held {
		peer := s.lead.peer(h.ID)
		if peer == nil {
			continue
		}
		if h.ID == m.From {
			peer.MarkHeard(s.now) // it shows nothing of the others: their part may be old
		}
		peer.Promised = true
		peer.Acknowledge(h.MissingBodies, h.Upto, s.prop.End)
		told = append(told, peer)
	}
	s.advance()
	for _, peer := range told {
		if s.role != protocol.Leader {
			return
		}
		replicateGroup(s, peer)
		sendLead(s, peer)
	}
}

// waitsForGroup reports whether a peer is sent nothing new until the others of its group have space in their
// windows.
func (s *Paxos) waitsForGroup(p *paxos.Peer) bool {
	l := &s.lead
	return l.pacing.Hold(l.relays.Group(p.ID), p, l.peers, s.now, s.cfg.Heartbeat, func(q *paxos.Peer) bool {
		return s.streaming[q.ID] || len(q.Frames) < s.depth(q)
	})
}

// replicateGroup replicates to a peer and to the others of its group, which may have waited for it.
func replicateGroup(s *Paxos, p *paxos.Peer) {
	g := s.lead.relays.Group(p.ID)
	s.replicate(p)
	for _, q := range s.lead.peers {
		if q != p && slices.Contains(g, q.ID) {
			s.replicate(q)
		}
	}
}

// markStranded handles an unreachable member: frames that it was to forward are lost too.
func markStranded(s *Paxos, via protocol.MemberID) {
	for _, p := range s.lead.peers {
		if p.Uses(via) {
			s.lead.relays.Exclude(via, s.now+s.cfg.ElectionTimeout)
			p.MarkLost(s.now)
		}
	}
}
