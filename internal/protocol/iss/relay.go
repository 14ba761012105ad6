package iss

import (
	"slices"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/paxos/relay"
	"github.com/braidlog/braid/protocol"
)

// Relays in ISS. Each member that proposes in a segment has relays, the same ones in all segments. A relay gathers
// for each segment separately.

// The mutants of relays in ISS.
const (
	MutantRelayEarly       protocol.Mutant = "iss-relay-early"
	MutantRelayListsSilent protocol.Mutant = "iss-relay-lists-silent"
)

// groupOthers builds the groups from the others that are members.
func (s *ISS) groupOthers() {
	var ids []protocol.MemberID
	for _, o := range s.others {
		if o.leaving == 0 {
			ids = append(ids, o.id)
		}
	}
	s.relays.Split(&s.conf, ids, s.relayGroups)
}

// bundle replaces the step's equal messages to members of a group by one message to a relay.
func (s *ISS) bundle(sent, released int) {
	s.out.Send = s.relays.Bundle(s.out.Send, sent, s.now, bundler{s})
	s.out.Release = s.relays.Bundle(s.out.Release, released, s.now, bundler{s})
}

// bundler implements [relay.Bundler] for messages of ISS.
type bundler struct{ s *ISS }

// Equal ignores the lists of slots that are ⊥. A question to a member is sent to it directly.
func (r bundler) Equal(a, b *protocol.Message) bool {
	if a.Type != MsgAccept || b.Type != MsgAccept || a.Term != b.Term || uint64(a.Term) != r.s.number() ||
		a.Commit != b.Commit || !relay.SameEntries(a, b) {
		return false
	}
	p, q := a.Part.(*Part), b.Part.(*Part)
	asks := len(a.Entries) == 0 && (a.Context != 0 || b.Context != 0)
	return p.Segment == q.Segment && p.Ballot == q.Ballot && p.Upto == q.Upto && !asks
}

func (r bundler) Fit(id protocol.MemberID) bool {
	o := r.s.other(id)
	return o != nil && o.answered && r.s.now < o.heard+relay.Recent*r.s.cfg.Heartbeat
}

// Wrap lists the slots that are ⊥ and that one of the receivers may not know of.
func (r bundler) Wrap(via protocol.MemberID, among []*protocol.Message) *protocol.Message {
	m := *among[0]
	part := *m.Part.(*Part)
	b, known := r.s.segmentAt(part.Segment), r.s.hasOf(m.To)
	for _, a := range among {
		known = min(known, r.s.hasOf(a.To))
		if p := b.peer(a.To); p != nil && len(a.Entries) > 0 {
			p.SetRelay(via, relay.LastSlot(a))
		}
	}
	part.Slot, part.Nil, part.Members = 0, b.nils.After(known), relay.Receivers(among, via)
	m.Type, m.To, m.Part, m.Context = MsgRelay, via, &part, uint64(relay.LastSlot(&m))
	return &m
}

// segmentAt is the segment of the epoch that begins with a slot; nil if there is none.
func (t *epochState) segmentAt(first protocol.Index) *broadcast {
	if b := t.holder(first); b != nil && b.seg.First == first {
		return b
	}
	return nil
}

// markStranded handles an unreachable member: frames that it was to forward are lost too.
func (s *ISS) markStranded(via protocol.MemberID) {
	for _, b := range s.parts {
		for _, p := range b.peers {
			if p.Uses(via) {
				s.relays.Exclude(via, s.now+s.cfg.ElectionTimeout)
				b.markLost(p)
			}
		}
	}
}

// proposerOf is the member that proposed the entries of a message.
func proposerOf(m *protocol.Message, p *Part) protocol.MemberID {
	if m.Type == MsgRelayed && len(p.Members) == 1 {
		return p.Members[0]
	}
	return m.From
}

// relay sends a proposer's message, which this member has accepted itself, to the others of the group.
func (b *broadcast) relay(m *protocol.Message, p *Part) {
	part := Part{Segment: p.Segment, Upto: p.Upto, Ballot: p.Ballot, Nil: p.Nil, Members: []protocol.MemberID{m.From}}
	members := make([]protocol.MemberID, 0, len(p.Members)+1)
	for _, id := range p.Members {
		if id == b.s.cfg.Self || id == m.From || slices.Contains(members, id) {
			continue
		}
		members = append(members, id)
		copied := *m
		copied.Type, copied.From, copied.To, copied.Part = MsgRelayed, b.s.cfg.Self, id, &part
		b.s.out.Send = append(b.s.out.Send, &copied)
	}
	if m.Context == 0 {
		return
	}
	b.gather.Begin(m.From, p.Ballot)
	b.gather.RecordForward(relay.Forwarded{
		Last: relay.LastSlot(m), Due: b.s.now + b.s.cfg.Heartbeat/2, Written: b.s.disk.Written,
		Members: append(members, b.s.cfg.Self),
	}, b.s.now)
	b.relayOwn()
}

// relayOwn records what this member itself accepted, as far as that is durable, and reports to the proposer if that
// is due.
func (b *broadcast) relayOwn() {
	g, upto, done := &b.gather, b.stable(), b.s.disk.Done
	if g.Proposer == 0 {
		return
	}
	if g.Ballot != b.acc.Promised {
		*g = relay.Gathering{} // another member proposes
		return
	}
	if !g.Awaits(b.s.cfg.Self) {
		return
	}
	if b.s.cfg.Mutant == MutantRelayEarly {
		upto, done = b.acc.Reach, b.s.disk.Written
	}
	g.RecordAnswer(relay.Held{ID: b.s.cfg.Self, Upto: upto}, g.AnsweredUpTo(done), b.s.now, b.s.cfg.Heartbeat/2)
	b.reportGathered()
}

// reportGathered sends the proposer what was gathered for it, if that is due.
func (b *broadcast) reportGathered() {
	g := &b.gather
	if g.Proposer != 0 && g.Ballot == b.acc.Promised && g.Due(b.s.now) {
		b.send(g.Proposer, MsgGathered,
			Part{Ballot: g.Ballot, Held: g.Report(b.s.cfg.Self, b.s.cfg.Mutant == MutantRelayListsSilent)})
	}
}

// gathered records an answer that this member gathers for a proposer. It reports false for any other answer.
func (b *broadcast) gathered(m *protocol.Message, p *Part) bool {
	g := &b.gather
	mine := b.prop.Phase == paxos.Ready && b.prop.Ballot == p.Ballot
	if mine || g.Proposer == 0 || g.Ballot != p.Ballot ||
		!g.RecordAnswer(relay.Held{ID: m.From, Upto: p.Slot}, protocol.Index(m.Context), b.s.now, b.s.cfg.Heartbeat/2) {
		return false
	}
	b.reportGathered()
	return true
}

// onGathered handles a relay's report. Each member counts once, however often it is listed.
func onGathered(b *broadcast, m *protocol.Message, p *Part) {
	if b.prop.Phase != paxos.Ready || p.Ballot != b.prop.Ballot {
		return
	}
	b.s.relays.RecordAnswer(m.From, b.s.now)
	for _, h := range p.Held {
		if peer := b.peer(h.ID); peer != nil {
			b.acknowledged(peer, h.Upto)
		}
	}
	b.progress()
}

// markLost handles a possible loss of what was sent to a peer.
func (b *broadcast) markLost(p *paxos.Peer) {
	p.Restart(b.seg.After(p.Match))
	p.Lost, p.LostAt = true, paxos.Stamp(b.s.now)
}
