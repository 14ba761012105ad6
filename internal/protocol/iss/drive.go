package iss

import (
	"cmp"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/protocol"
)

// Phase 2 at the proposer of a segment, under ballot 0 and others alike.

// track updates the peers to the other members.
func (b *broadcast) track() {
	known := b.peers
	b.peers, b.quiet, b.counted = nil, false, counted{}
	for _, o := range b.s.others {
		at := slices.IndexFunc(known, func(p *paxos.Peer) bool { return p.ID == o.id })
		if at >= 0 {
			b.peers = append(b.peers, known[at])
			continue
		}
		b.peers = append(b.peers, &paxos.Peer{ID: o.id, Match: b.seg.Before(), Next: b.seg.First, Trip: o.trip})
	}
}

func (b *broadcast) peer(id protocol.MemberID) *paxos.Peer {
	if at := b.s.usualPlace(id); at >= 0 && at < len(b.peers) && b.peers[at].ID == id {
		return b.peers[at]
	}
	at, ok := slices.BinarySearchFunc(b.peers, id,
		func(p *paxos.Peer, id protocol.MemberID) int { return cmp.Compare(p.ID, id) })
	if !ok {
		return nil
	}
	return b.peers[at]
}

// addValue proposes an entry under this member's ballot.
func (b *broadcast) addValue(e protocol.Entry) {
	if b.values == nil {
		b.values = map[protocol.Index]protocol.Entry{}
	}
	b.values[e.Index] = e
	b.prop.MarkProposed()
}

// progress decides what a quorum has accepted.
func (b *broadcast) progress() {
	now := b.counts()
	if b.prop.End <= b.upto || now == b.counted {
		return // the usual case
	}
	b.counted = now
	q := b.agreed()
	for i := b.seg.After(b.upto); i <= min(q, b.prop.End) && b.prop.Phase == paxos.Ready; i = b.seg.After(i) {
		if v, ok := b.values[i]; ok {
			b.decide(v)
		}
	}
}

func (b *broadcast) counts() counted { return counted{b.prop.End, b.upto, b.stable()} }

// agreed is the last slot up to which a quorum has accepted everything. Voters are counted in the order of the
// peers.
func (b *broadcast) agreed() protocol.Index {
	own, at := b.stable(), 0
	return protocol.Index(b.s.decides.Agreed(func(id protocol.MemberID) uint64 {
		if id == b.s.cfg.Self {
			return uint64(own)
		}
		if at == len(b.peers) || b.peers[at].ID > id {
			at = 0
		}
		for ; at < len(b.peers) && b.peers[at].ID <= id; at++ {
			if b.peers[at].ID == id {
				return uint64(b.peers[at].Match)
			}
		}
		return 0
	}))
}

// counted is up to where slots are proposed and decided, and what this member's disk has. Zero: a peer has
// acknowledged more since.
type counted struct{ end, upto, stable protocol.Index }

// acknowledged records that a peer has all slots up to one.
func (b *broadcast) acknowledged(p *paxos.Peer, match protocol.Index) {
	had := p.Match
	p.Acknowledge(false, match, b.prop.End)
	if p.Match > had {
		b.counted = counted{}
	}
}

// replicateAll sends all peers what they are missing.
func (b *broadcast) replicateAll() {
	if b.prop.Phase != paxos.Ready || b.prop.Ballot == 0 && !b.begun() {
		return
	}
	now := driven{b.prop.End, b.upto, b.nilled}
	if b.quiet && now == b.covered {
		return
	}
	news := b.covered.nilled != b.nilled
	b.covered, b.quiet, b.frame = now, true, paxos.Frame{}
	for _, p := range b.peers {
		if b.s.inReach(p.ID) {
			b.replicate(p, news)
		}
		b.quiet = b.quiet && b.upToDate(p)
	}
}

// driven is up to where slots are proposed, up to where they are decided, and how many are ⊥.
type driven struct {
	end, upto protocol.Index
	nilled    int
}

// upToDate reports whether there is nothing to send to a peer until something changes.
func (d *driving) upToDate(p *paxos.Peer) bool {
	return p.Lost || p.Next > d.covered.end && p.CommitSent >= d.covered.upto
}

// replicate sends a peer missing entries, as far as its window allows, and otherwise the decisions.
func (b *broadcast) replicate(p *paxos.Peer, news bool) {
	for !p.Lost {
		p.Next = max(p.Next, b.sendable(p))
		if p.Next > b.prop.End {
			break
		}
		f := b.frameOf(p)
		if len(f.Entries) == 0 {
			p.Next, news = f.End+1, true
			continue
		}
		if len(p.Frames) >= b.s.depth(p) {
			return
		}
		if b.pacing.Hold(b.s.relays.Group(p.ID), p, b.peers, b.s.now, b.s.cfg.Heartbeat,
			func(q *paxos.Peer) bool { return len(q.Frames) < b.s.depth(q) }) {
			return
		}
		if len(p.Frames) > 0 && p.Bytes+f.Bytes > b.s.cfg.MaxInflightBytes {
			return
		}
		p.Next = f.End + 1
		p.Frames, p.Bytes = append(p.Frames, paxos.Flight{Last: f.End, Bytes: f.Bytes, Sent: b.s.now}), p.Bytes+f.Bytes
		b.sendAccept(p, f.Entries, true)
		news = false
	}
	if !p.Lost && (news || p.CommitSent < b.upto) {
		b.sendAccept(p, nil, false)
	}
}

// sendable is the first slot that may be sent to a peer: after what its disk has of the log, and after this log's
// base. Entries of this log are sent too: otherwise a peer that is slower than a quorum would miss what was decided
// while its window was full.
func (b *broadcast) sendable(p *paxos.Peer) protocol.Index {
	if b.s.cfg.Mutant == MutantLogUnsent {
		return b.seg.After(b.s.log.Last())
	}
	return b.seg.After(max(b.seg.Before(), b.s.log.Base, b.s.loggedOf(p.ID)))
}

// value returns what this member proposes in a slot, or what is decided there. It returns nothing if the body is
// not here: a member that is missing the entry gets it by Tell.
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

// frameOf returns the next frame for a peer. Peers with the same next slot share it.
func (b *broadcast) frameOf(p *paxos.Peer) paxos.Frame {
	stop := b.s.relays.FrameEnd(p, b.peers, b.prop.End)
	if f := &b.frame; len(f.Entries) == 0 || f.After != p.Next-1 || b.frameStop != stop {
		*f, b.frameStop = b.frameAfter(p.Next, stop), stop
	}
	return b.frame
}

// frameAfter returns the entries from a slot on, up to an end, as one frame. Slots that are ⊥ are in no frame: each
// message lists them.
func (b *broadcast) frameAfter(from, end protocol.Index) (f paxos.Frame) {
	f.After, f.End = from-1, from-1
	for i := b.seg.After(from - 1); i <= end; i = b.seg.After(i) {
		v, ok := b.value(i)
		if !ok || isNil(&v) && b.isDecided(i) {
			f.End = i
			continue
		}
		if n := len(f.Entries); n > 0 && (f.Bytes+v.Bytes() > b.s.cfg.MaxFrameBytes || n == b.s.cfg.MaxFrameEntries) {
			break
		}
		f.Entries, f.Bytes, f.End = append(f.Entries, v), f.Bytes+v.Bytes(), i
	}
	if len(f.Entries) == 0 {
		f.End = end
	}
	return f
}

// sendAccept sends entries and decisions. asks: the receiver answers with what it has. Decisions need no message of
// their own while another message to the peer has not been sent: its contents are updated.
func (b *broadcast) sendAccept(p *paxos.Peer, entries []protocol.Entry, asks bool) {
	p.CommitSent = b.upto
	part := Part{Segment: b.seg.First, Upto: b.upto, Ballot: b.prop.Ballot, Slot: p.Match,
		Nil: b.nils.After(b.s.hasOf(p.ID))}
	m := b.unsentAccept(p)
	switch {
	case m != nil && !asks:
		said := m.Part.(*Part)
		said.Upto, said.Nil = part.Upto, part.Nil
		return
	case m != nil && m.Context == 0:
		*m.Part.(*Part), m.Commit = part, b.s.log.Last()
	case b.s.cfg.NoParallelAppend:
		m = b.release(p.ID, MsgAccept, part)
	default:
		m = b.send(p.ID, MsgAccept, part)
		p.LastAccept, p.LastAcceptAt = m, len(b.s.out.Send)-1
	}
	m.Entries = entries
	if asks {
		m.Context = paxos.Stamp(b.s.now)
	}
}

// unsentAccept is the step's last Accept to a peer if it has not been sent yet; nil otherwise, and if there are
// relays: they need messages that are equal.
func (b *broadcast) unsentAccept(p *paxos.Peer) *protocol.Message {
	if at, out := p.LastAcceptAt,
		b.s.out.Send; p.LastAccept != nil && at < len(out) && out[at] == p.LastAccept && len(b.s.relays.Groups) == 0 {
		return p.LastAccept
	}
	return nil
}

// sendHeartbeats asks peers that are missing something what they have. This finds losses. An elected proposer asks
// all, to stay active.
func (b *broadcast) sendHeartbeats() {
	if b.s.now < b.heartbeatAt {
		return
	}
	b.heartbeatAt = b.s.now + b.s.cfg.Heartbeat
	for _, p := range b.peers {
		if b.s.inReach(p.ID) && (p.Match < b.prop.End || p.Lost || b.prop.Ballot > 0) && (b.prop.Ballot > 0 || b.begun()) {
			b.sendAccept(p, nil, true)
		}
	}
}

// onAccepted handles an acknowledgement. Members that do not propose receive it too, as a vote.
func onAccepted(b *broadcast, m *protocol.Message, p *Part) {
	if b.gathered(m, p) {
		return
	}
	peer := b.peer(m.From)
	if peer == nil || b.prop.Phase != paxos.Ready || p.Ballot != b.prop.Ballot {
		b.votes.record(m.From, p.Ballot, p.Slot)
		b.s.noteUsed(min(p.Slot, b.seg.Last))
		b.learnVoted()
		return
	}
	b.acknowledged(peer, p.Slot)
	if m.Context != 0 && m.Context <= paxos.Stamp(b.s.now) {
		peer.RecordTrip(b.s.now - time.Duration(m.Context-1))
		b.s.recordTrip(peer)
		long := b.s.relays.LossTimeout(peer, &b.s.cfg, b.s.now, bundler{b.s}.Fit)
		lost := peer.Gap(m.Context, p.Hint, long)
		switch {
		case !lost && (!peer.Lost || m.Context <= peer.LostAt):
		case b.seg.After(p.Hint) <= b.s.log.Last():
			b.s.sendEntries(m.From, m.Commit) // it is missing entries of the log, and cannot report what it has after them
		default: // the oldest frame in flight was lost
			b.s.relays.ReportLost(peer, b.s.now+b.s.cfg.ElectionTimeout)
			peer.Restart(b.seg.After(max(p.Hint, peer.Match)))
			b.quiet = false
		}
	}
	b.progress()
}

// onRefused handles a refusal: the sender has promised a higher ballot.
func onRefused(b *broadcast, _ *protocol.Message, p *Part) {
	b.seen = max(b.seen, p.Ballot)
	if b.prop.Phase != paxos.Idle && p.Ballot > b.prop.Ballot {
		b.stepDown()
	}
}
