package multipaxos

import (
	"cmp"
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
)

// Phase 2 at whoever proposes in a segment, under ballot 0 and others alike.

// track makes peers of all others.
func (b *broadcast) track() {
	known := b.peers
	b.peers, b.calm, b.counted = nil, false, counted{}
	for _, o := range b.s.others {
		at := slices.IndexFunc(known, func(p *peer) bool { return p.id == o.id })
		if at >= 0 {
			b.peers = append(b.peers, known[at])
			continue
		}
		b.peers = append(b.peers, &peer{id: o.id, match: b.seg.before(), next: b.seg.first, trip: o.trip})
	}
}

func (b *broadcast) peer(id protocol.MemberID) *peer {
	if at := b.s.usual(id); at >= 0 && at < len(b.peers) && b.peers[at].id == id {
		return b.peers[at]
	}
	at, ok := slices.BinarySearchFunc(b.peers, id, func(p *peer, id protocol.MemberID) int { return cmp.Compare(p.id, id) })
	if !ok {
		return nil
	}
	return b.peers[at]
}

// putUp proposes an entry under this member's ballot.
func (b *broadcast) putUp(e protocol.Entry) {
	if b.values == nil {
		b.values = map[protocol.Index]protocol.Entry{}
	}
	b.values[e.Index] = e
	b.prop.proposed()
}

// progress decides what a quorum has accepted.
func (b *broadcast) progress() {
	now := b.counts()
	if b.prop.end <= b.upto || now == b.counted {
		return // as mostly
	}
	b.counted = now
	q := b.agreed()
	for i := b.seg.after(b.upto); i <= min(q, b.prop.end) && b.prop.phase == ready; i = b.seg.after(i) {
		if v, ok := b.values[i]; ok {
			b.decide(v)
		}
	}
}

func (b *broadcast) counts() counted { return counted{b.prop.end, b.upto, b.stable()} }

// agreed is up to where a quorum has accepted everything. Voters are asked for in the order of the peers.
func (b *broadcast) agreed() protocol.Index {
	own, at := b.stable(), 0
	return protocol.Index(b.s.decides.Agreed(func(id protocol.MemberID) uint64 {
		if id == b.s.cfg.Self {
			return uint64(own)
		}
		if at == len(b.peers) || b.peers[at].id > id {
			at = 0
		}
		for ; at < len(b.peers) && b.peers[at].id <= id; at++ {
			if b.peers[at].id == id {
				return uint64(b.peers[at].match)
			}
		}
		return 0
	}))
}

// counted is what there was when what a quorum has was counted last: up to where slots are proposed and decided, and what this
// member's disk has. Zero: a peer has more since.
type counted struct{ end, upto, stable protocol.Index }

// took takes in that a peer has all slots up to one.
func (b *broadcast) took(p *peer, match protocol.Index) {
	had := p.match
	p.told(false, match, b.prop.end)
	if p.match > had {
		b.counted = counted{}
	}
}

// drive sends all peers what they lack.
func (b *broadcast) drive() {
	if b.prop.phase != ready || b.prop.ballot == 0 && !b.begun() {
		return
	}
	now := driven{b.prop.end, b.upto, b.nilled}
	if b.calm && now == b.driven {
		return
	}
	news := b.driven.nilled != b.nilled
	b.driven, b.calm, b.frame = now, true, frame{}
	for _, p := range b.peers {
		if b.s.follows(p.id) {
			b.replicate(p, news)
		}
		b.calm = b.calm && b.rests(p)
	}
}

// driven is up to where slots are proposed, up to where they are decided, and how many are ⊥.
type driven struct {
	end, upto protocol.Index
	nilled    int
}

// rests reports whether there is nothing to be sent to a peer, as long as nothing changes.
func (b *broadcast) rests(p *peer) bool {
	return p.lost || p.next > b.driven.end && p.toldTo >= b.driven.upto
}

// replicate sends a peer what it lacks, as far as its window allows, and else what is decided.
func (b *broadcast) replicate(p *peer, news bool) {
	for !p.lost {
		p.next = max(p.next, b.sendable(p))
		if p.next > b.prop.end {
			break
		}
		f := b.frameOf(p)
		if len(f.entries) == 0 {
			p.next, news = f.end+1, true
			continue
		}
		if len(p.frames) >= b.s.depth(p) {
			return
		}
		if b.paces.holds(b.s.relays.group(p.id), p, b.peers, b.s.now, b.s.cfg.Heartbeat, func(q *peer) bool { return len(q.frames) < b.s.depth(q) }) {
			return
		}
		if len(p.frames) > 0 && p.bytes+f.bytes > b.s.cfg.MaxInflightBytes {
			return
		}
		p.next = f.end + 1
		p.frames, p.bytes = append(p.frames, flight{last: f.end, bytes: f.bytes, sent: b.s.now}), p.bytes+f.bytes
		b.sendAccept(p, f.entries, true)
		news = false
	}
	if !p.lost && (news || p.toldTo < b.upto) {
		b.sendAccept(p, nil, false)
	}
}

// sendable is the first slot that may be sent to a peer: its disk has the log up to the one before, or this log begins there. What this
// log has is sent too. Else a peer that is slower than a quorum would lack what was decided while its window was full.
func (b *broadcast) sendable(p *peer) protocol.Index {
	if b.s.cfg.Mutant == MutantISSLogUnsent {
		return b.seg.after(b.s.log.Last())
	}
	return b.seg.after(max(b.seg.before(), b.s.log.Base, b.s.loggedOf(p.id)))
}

// value is what this member knows of a slot: what it proposes there, or what is decided. Of a body that is not here nothing
// can be said: who lacks it is told (see Tell).
func (b *broadcast) value(i protocol.Index) (protocol.Entry, bool) {
	if v, ok := b.values[i]; ok {
		return v, true
	}
	if v, ok := b.decided[i]; ok || i <= b.s.log.Base || i > b.s.log.Last() {
		return v, ok
	}
	v := b.s.log.At(i)
	return v, v.BodySize == 0 || v.Form == protocol.FormWhole
}

// frameOf is the next frame for a peer. Peers that are equally far get the same.
func (b *broadcast) frameOf(p *peer) frame {
	stop := b.s.relays.stop(p, b.peers, b.prop.end)
	if f := &b.frame; len(f.entries) == 0 || f.after != p.next-1 || b.frameStop != stop {
		*f, b.frameStop = b.frameAfter(p.next, stop), stop
	}
	return b.frame
}

// frameAfter is the frame with the entries from a slot on, of those up to an end. Slots that are ⊥ are in no frame: each message names them.
func (b *broadcast) frameAfter(from, end protocol.Index) (f frame) {
	f.after, f.end = from-1, from-1
	for i := b.seg.after(from - 1); i <= end; i = b.seg.after(i) {
		v, ok := b.value(i)
		if !ok || isNil(&v) && b.knows(i) {
			f.end = i
			continue
		}
		if n := len(f.entries); n > 0 && (f.bytes+v.Bytes() > b.s.cfg.MaxFrameBytes || n == b.s.cfg.MaxFrameEntries) {
			break
		}
		f.entries, f.bytes, f.end = append(f.entries, v), f.bytes+v.Bytes(), i
	}
	if len(f.entries) == 0 {
		f.end = end
	}
	return f
}

// sendAccept sends entries and what is decided. asks: the receiver is to say what it has. What is decided needs no message of
// its own while another one to the peer has not left. All that a message says holds until it leaves.
func (b *broadcast) sendAccept(p *peer, entries []protocol.Entry, asks bool) {
	p.toldTo = b.upto
	part := ISSPart{Segment: b.seg.first, Upto: b.upto, Ballot: b.prop.ballot, Slot: p.match, Nil: b.nils.beyond(b.s.hasOf(p.id))}
	m := b.waiting(p)
	switch {
	case m != nil && !asks:
		said := m.Part.(*ISSPart)
		said.Upto, said.Nil = part.Upto, part.Nil
		return
	case m != nil && m.Context == 0:
		*m.Part.(*ISSPart), m.Commit = part, b.s.log.Last()
	case b.s.cfg.NoParallelAppend:
		m = b.release(p.id, MsgISSAccept, part)
	default:
		m = b.send(p.id, MsgISSAccept, part)
		p.said, p.saidAt = m, len(b.s.out.Send)-1
	}
	m.Entries = entries
	if asks {
		m.Context = stamp(b.s.now)
	}
}

// waiting is the last message to a peer about what is proposed, if it has not left yet; else nil. Where there are relays,
// messages that are equal are more use.
func (b *broadcast) waiting(p *peer) *protocol.Message {
	if at, out := p.saidAt, b.s.out.Send; p.said != nil && at < len(out) && out[at] == p.said && len(b.s.relays.groups) == 0 {
		return p.said
	}
	return nil
}

// tendDrive asks peers from time to time what they have, if something is missing there. What was lost is found out
// so. An elected proposer makes itself heard anyway.
func (b *broadcast) tendDrive() {
	if b.s.now < b.beat {
		return
	}
	b.beat = b.s.now + b.s.cfg.Heartbeat
	for _, p := range b.peers {
		if b.s.follows(p.id) && (p.match < b.prop.end || p.lost || b.prop.ballot > 0) && (b.prop.ballot > 0 || b.begun()) {
			b.sendAccept(p, nil, true)
		}
	}
}

// onAccepted takes in how far a member has accepted. Also who does not propose hears of that.
func (b *broadcast) onAccepted(m *protocol.Message, p *ISSPart) {
	if b.gathered(m, p) {
		return
	}
	peer := b.peer(m.From)
	if peer == nil || b.prop.phase != ready || p.Ballot != b.prop.ballot {
		b.votes.heard(m.From, p.Ballot, p.Slot)
		b.s.hearUsed(min(p.Slot, b.seg.last))
		b.learnVoted()
		return
	}
	b.took(peer, p.Slot)
	if m.Context != 0 && m.Context <= stamp(b.s.now) {
		peer.measured(b.s.now - time.Duration(m.Context-1))
		b.s.measured(peer)
		long := b.s.relays.wait(peer, &b.s.cfg, b.s.now, bundler{b.s}.fit)
		lost := peer.gap(m.Context, p.Hint, long)
		switch {
		case !lost && (!peer.lost || m.Context <= peer.lostAt):
		case b.seg.after(p.Hint) <= b.s.log.Last():
			b.s.tell(m.From, m.Commit) // it lacks what is in the log, and cannot say what it has after that
		default: // the oldest frame in flight never arrived
			b.s.relays.missed(peer, b.s.now+b.s.cfg.ElectionTimeout)
			peer.restart(b.seg.after(max(p.Hint, peer.match)))
			b.calm = false
		}
	}
	b.progress()
}

// onRefused: who answers has promised a higher ballot.
func (b *broadcast) onRefused(_ *protocol.Message, p *ISSPart) {
	b.seen = max(b.seen, p.Ballot)
	if b.prop.phase != idle && p.Ballot > b.prop.ballot {
		b.giveWay()
	}
}
