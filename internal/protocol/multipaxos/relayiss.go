package multipaxos

import (
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Relays in ISS. Each member that proposes in a segment has relays, the same ones in all segments. A member gathers for
// each segment by itself.

// The mutants of relays in ISS.
const (
	MutantISSRelayEarly       protocol.Mutant = "iss-relay-early"
	MutantISSRelayListsSilent protocol.Mutant = "iss-relay-lists-silent"
)

// groupOthers makes the groups anew from the others that are members.
func (s *ISS) groupOthers() {
	var ids []protocol.MemberID
	for _, o := range s.others {
		if o.leaving == 0 {
			ids = append(ids, o.id)
		}
	}
	s.relays.split(ids, s.relayGroups)
}

// bundle puts what the step sends to several members of a group into one message to a relay.
func (s *ISS) bundle(sent, released int) {
	s.out.Send = s.relays.bundle(s.out.Send, sent, s.now, bundler{s})
	s.out.Release = s.relays.bundle(s.out.Release, released, s.now, bundler{s})
}

// bundler puts messages of ISS together.
type bundler struct{ s *ISS }

// equal: what messages say of ⊥ may differ. What asks a member what it has goes to it alone.
func (r bundler) equal(a, b *protocol.Message) bool {
	if a.Type != MsgISSAccept || b.Type != MsgISSAccept || a.Term != b.Term || uint64(a.Term) != r.s.number() || a.Commit != b.Commit || !sameEntries(a, b) {
		return false
	}
	p, q := a.Part.(*ISSPart), b.Part.(*ISSPart)
	asks := len(a.Entries) == 0 && (a.Context != 0 || b.Context != 0)
	return p.Segment == q.Segment && p.Ballot == q.Ballot && p.Upto == q.Upto && !asks
}

func (r bundler) fit(id protocol.MemberID) bool {
	o := r.s.other(id)
	return o != nil && o.answered && r.s.now < o.heard+prompt*r.s.cfg.Heartbeat
}

// wrap: of ⊥ the message says what one of its receivers may not know.
func (r bundler) wrap(via protocol.MemberID, among []*protocol.Message) *protocol.Message {
	m := *among[0]
	part := *m.Part.(*ISSPart)
	b, known := r.s.segmentAt(part.Segment), r.s.hasOf(m.To)
	for _, a := range among {
		known = min(known, r.s.hasOf(a.To))
		if p := b.peer(a.To); p != nil && len(a.Entries) > 0 {
			p.sentBy(via, lastSlot(a))
		}
	}
	part.Slot, part.Nil, part.Members = 0, b.nils.beyond(known), receivers(among, via)
	m.Type, m.To, m.Part, m.Context = MsgISSRelay, via, &part, uint64(lastSlot(&m))
	return &m
}

// segmentAt is the segment of the epoch that begins with a slot; nil if there is none.
func (s *ISS) segmentAt(first protocol.Index) *broadcast {
	if b := s.holder(first); b != nil && b.seg.first == first {
		return b
	}
	return nil
}

// stranded takes notice of a member that nothing reaches: what it was to pass on is lost too.
func (s *ISS) stranded(via protocol.MemberID) {
	for _, b := range s.parts {
		for _, p := range b.peers {
			if p.strands(via) {
				s.relays.doubt(via, s.now+s.cfg.ElectionTimeout)
				b.lose(p)
			}
		}
	}
}

// issProposer is the member that proposes what a message brings.
func issProposer(m *protocol.Message, p *ISSPart) protocol.MemberID {
	if m.Type == MsgISSRelayed && len(p.Members) == 1 {
		return p.Members[0]
	}
	return m.From
}

// relay passes on what a proposer sent, which this member has accepted itself.
func (b *broadcast) relay(m *protocol.Message, p *ISSPart) {
	part := ISSPart{Segment: p.Segment, Upto: p.Upto, Ballot: p.Ballot, Nil: p.Nil, Members: []protocol.MemberID{m.From}}
	members := make([]protocol.MemberID, 0, len(p.Members)+1)
	for _, id := range p.Members {
		if id == b.s.cfg.Self || id == m.From || slices.Contains(members, id) {
			continue
		}
		members = append(members, id)
		copied := *m
		copied.Type, copied.From, copied.To, copied.Part = MsgISSRelayed, b.s.cfg.Self, id, &part
		b.s.out.Send = append(b.s.out.Send, &copied)
	}
	if m.Context == 0 {
		return
	}
	b.gather.begin(m.From, p.Ballot)
	b.gather.pass(passed{
		last: lastSlot(m), due: b.s.now + b.s.cfg.Heartbeat/2, written: b.s.disk.Written, members: append(members, b.s.cfg.Self),
	}, b.s.now)
	b.relayOwn()
}

// relayOwn takes in what this member itself accepted, as far as that is durable, and tells the proposer if it is time.
func (b *broadcast) relayOwn() {
	g, upto, done := &b.gather, b.stable(), b.s.disk.Done
	if g.to == 0 {
		return
	}
	if g.ballot != b.acc.promised {
		*g = gathering{} // another one proposes
		return
	}
	if !g.owes(b.s.cfg.Self) {
		return
	}
	if b.s.cfg.Mutant == MutantISSRelayEarly {
		upto, done = b.acc.reach, b.s.disk.Written
	}
	g.took(held{id: b.s.cfg.Self, upto: upto}, g.own(done), b.s.now, b.s.cfg.Heartbeat/2)
	b.tendRelay()
}

// tendRelay tells the proposer what was gathered for it.
func (b *broadcast) tendRelay() {
	g := &b.gather
	if g.to != 0 && g.ballot == b.acc.promised && g.due(b.s.now) {
		b.send(g.to, MsgISSGathered, ISSPart{Ballot: g.ballot, Held: g.tell(b.s.cfg.Self, b.s.cfg.Mutant == MutantISSRelayListsSilent)})
	}
}

// gathered reports whether an answer is one that this member gathers for somebody else.
func (b *broadcast) gathered(m *protocol.Message, p *ISSPart) bool {
	g := &b.gather
	mine := b.prop.phase == ready && b.prop.ballot == p.Ballot
	if mine || g.to == 0 || g.ballot != p.Ballot || !g.took(held{id: m.From, upto: p.Slot}, protocol.Index(m.Context), b.s.now, b.s.cfg.Heartbeat/2) {
		return false
	}
	b.tendRelay()
	return true
}

// onGathered takes in what a relay tells of its group. Each member counts once, however often it is listed.
func (b *broadcast) onGathered(m *protocol.Message, p *ISSPart) {
	if b.prop.phase != ready || p.Ballot != b.prop.ballot {
		return
	}
	b.s.relays.tells(m.From, b.s.now)
	for _, h := range p.Held {
		if peer := b.peer(h.id); peer != nil {
			b.took(peer, h.upto)
		}
	}
	b.progress()
}

// lose: what was sent to a peer may be lost.
func (b *broadcast) lose(p *peer) {
	p.restart(b.seg.after(p.match))
	p.lost, p.lostAt = true, stamp(b.s.now)
}
