package iss

import (
	"cmp"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/paxos/relay"
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// other is what is known of another member.
type other struct {
	id       protocol.MemberID
	heard    time.Duration // when it was last heard of
	answered bool          // at all
	epoch    uint64        // the last one in which it was known to be; 0: it was never heard of
	// commit is up to where its log went, and logged what its disk had of that, as it said last.
	commit, logged protocol.Index
	// has is up to where its log goes in the life that it is in. What it had in an earlier life may be forgotten, so this falls
	// if it says so.
	//
	//	has ≤ commit
	has     protocol.Index
	lacking bool          // bodies of decided entries are missing there
	trip    time.Duration // the shortest recent round trip; 0: none was measured
	sending sending       // what this member tells it of the log
	// unsent: not all up to this slot was sent to it when the epoch of that slot ended. 0: all was.
	unsent protocol.Index
	// leaving is when it will not be told anything any more; 0: it is a member.
	leaving time.Duration
}

// members are the other members, and how this one reaches them.
type members struct {
	self protocol.MemberID
	// others are all members but this one, sorted by id.
	others []*other
	// relays are between this member, where it proposes, and the others.
	relays      relay.Relays
	relayGroups int // into how many groups this member puts the others; 0: it sends to all
	// heartbeatAt is when this member sends its next heartbeat, and beaten how far the log went at the last one.
	heartbeatAt    time.Duration
	endAtHeartbeat protocol.Index
}

// updateMembers keeps the others as the epoch and the last configuration say. Those that left go on to hear of this member for
// a while: nobody else tells them how the epoch ended.
func (s *ISS) updateMembers() {
	all := append(s.conf.All(), s.epochVoters()...)
	for _, id := range all {
		at, known := slices.BinarySearchFunc(s.others, id, func(o *other, id protocol.MemberID) int { return cmp.Compare(o.id, id) })
		if id != s.cfg.Self && !known {
			s.others = slices.Insert(s.others, at, &other{id: id, heard: s.now})
		}
	}
	for _, o := range s.others {
		switch {
		case slices.Contains(all, o.id):
			o.leaving = 0
		case o.leaving == 0:
			o.leaving = s.now + 2*s.cfg.ElectionTimeout
		}
	}
	s.groupOthers()
	for _, b := range s.parts {
		if b.prop.Phase != paxos.Idle {
			b.track()
		}
	}
}

func (t *epochState) epochVoters() []protocol.MemberID {
	if t.epoch == nil {
		return nil
	}
	return t.epoch.Voters
}

// removeDeparted forgets members that left long ago.
func (s *ISS) removeDeparted() {
	n := len(s.others)
	s.others = slices.DeleteFunc(s.others, func(o *other) bool { return o.leaving > 0 && s.now >= o.leaving })
	for _, b := range s.parts {
		if b.prop.Phase != paxos.Idle && n != len(s.others) {
			b.track()
		}
	}
}

// usualPlace is the place of another member among all others if their ids are those from 1 on, as mostly.
func (g *members) usualPlace(id protocol.MemberID) int {
	if id > g.self {
		return int(id) - 2
	}
	return int(id) - 1
}

func (g *members) other(id protocol.MemberID) *other {
	if at := g.usualPlace(id); at >= 0 && at < len(g.others) && g.others[at].id == id {
		return g.others[at]
	}
	at, ok := slices.BinarySearchFunc(g.others, id, func(o *other, id protocol.MemberID) int { return cmp.Compare(o.id, id) })
	if !ok {
		return nil
	}
	return g.others[at]
}

// commitOf is up to where a member's log goes, as far as is known.
func (g *members) commitOf(id protocol.MemberID) protocol.Index {
	if o := g.other(id); o != nil {
		return o.commit
	}
	return 0
}

// hasOf is up to where a member's log goes in its present life, as far as is known. Of slots up to there it need not be
// told that they are ⊥.
func (g *members) hasOf(id protocol.MemberID) protocol.Index {
	if o := g.other(id); o != nil {
		return o.has
	}
	return 0
}

// loggedOf is up to where a member's disk has its log, as far as is known. It does not fall if the member restarts.
func (g *members) loggedOf(id protocol.MemberID) protocol.Index {
	if o := g.other(id); o != nil {
		return o.logged
	}
	return 0
}

// active reports whether a member was heard of lately.
func (s *ISS) active(o *other) bool { return o.answered && s.now < o.heard+s.cfg.ElectionTimeout }

// quorate reports whether a quorum for phase 2 was heard of lately: enough to have something decided.
func (s *ISS) quorate() bool {
	return s.decides.Vote(func(id protocol.MemberID) quorum.Answer {
		if o := s.other(id); id == s.cfg.Self || o != nil && s.active(o) {
			return quorum.Granted
		}
		return quorum.Missing
	}) == quorum.Won
}

// recordTrip notes a round trip that a segment measured.
func (g *members) recordTrip(p *paxos.Peer) {
	if o := g.other(p.ID); o != nil {
		o.trip = p.Trip
	}
}

// depth is how many frames may be in flight to a member.
func (s *ISS) depth(p *paxos.Peer) int {
	if d := s.cfg.PipelineDepth; d > 0 {
		return d
	}
	return s.relays.Depth(p, p.Depth())
}

// inReach reports whether a member may take messages about the epoch's segments: it is in the epoch, or in the one
// before. Otherwise it drops them. They would only be in the way of what it has to be told first.
func (s *ISS) inReach(id protocol.MemberID) bool {
	o := s.other(id)
	return o == nil || o.epoch == 0 || o.epoch+1 >= s.number()
}

// heartbeat makes this member heard: how far it is, and whether it serves as a leader. A disk that stands still must not
// outlive it, and who hears no quorum does not serve.
func (s *ISS) heartbeat(to protocol.MemberID) {
	serving := s.own != nil && s.own.zero() && s.quorate() && !s.stalled()
	p := Part{Slot: s.disk.Durable.Last, Upto: s.top, Serving: serving, Lacking: s.bodies.Missing}
	if o := s.other(to); o != nil {
		p.Hint = o.logged
	}
	s.send(to, MsgBeat, p)
}

// forgets reports whether a message says that this member's disk had more of the log than it has (docs/internals/identity.md).
// That counts from the start on, before the first tick: later the log may have grown beyond it.
func (s *ISS) forgets(m *protocol.Message, p *Part) bool {
	if m.Type != MsgBeat || s.log.Last() >= p.Hint {
		return false
	}
	s.stopped = true
	s.out.Forgot = &protocol.Forgot{Leader: m.From, Term: m.Term, Acked: p.Hint, Last: s.log.Last()}
	return true
}

func onBeat(s *ISS, m *protocol.Message, p *Part) {
	if o := s.other(m.From); o != nil {
		o.lacking = p.Lacking
		o.has, o.logged = m.Commit, max(o.logged, p.Slot)
	} else if m.Commit > s.log.Last() && s.now >= s.catchUp.requestedAt+s.cfg.Heartbeat {
		s.requestEntries(m.From) // also of members that this one does not know (R7)
	}
	if uint64(m.Term) == s.number() {
		s.noteUsed(p.Upto)
	}
	if p.Serving && uint64(m.Term) == s.number() {
		for _, b := range s.parts {
			if b.leader == m.From && b.acc.Promised == 0 {
				b.noteProposer(m.From)
			}
		}
	}
}

// runHeartbeat lets others hear of this member, and asks for what it lacks. Who is told nothing for long may have been
// removed, or not know yet who the members are.
func (s *ISS) runHeartbeat() {
	if s.now < s.heartbeatAt {
		return
	}
	s.heartbeatAt = s.now + s.cfg.Heartbeat
	s.relays.Turn++
	s.removeDeparted()
	s.learnPending() // what came otherwise since is forgotten
	for _, o := range s.others {
		s.heartbeat(o.id)
	}
	s.promote()
	s.endAtHeartbeat = s.log.Last()
	if ahead := s.ahead(s.log.Last(), s.active); ahead != nil && s.now >= s.catchUp.grewAt+s.cfg.Heartbeat && s.now >= s.catchUp.requestedAt+s.catchUp.retryAfter {
		s.catchUp.retryAfter = min(max(2*s.catchUp.retryAfter, s.cfg.Heartbeat), s.cfg.ElectionTimeout) // the answer may be on a slow way
		s.requestEntries(ahead.id)
	}
	if s.now >= s.lastHeard()+2*s.cfg.ElectionTimeout {
		for _, o := range s.others {
			s.requestEntries(o.id)
		}
	}
}

// ahead is the member that knows most, if that is more than this one does.
func (g *members) ahead(last protocol.Index, active func(*other) bool) (most *other) {
	for _, o := range g.others {
		if o.commit > last && active(o) && (most == nil || o.commit > most.commit) {
			most = o
		}
	}
	return most
}

// lastHeard is when any other member was heard of last.
func (g *members) lastHeard() (at time.Duration) {
	for _, o := range g.others {
		at = max(at, o.heard)
	}
	return at
}

// requestEntries asks a member for what follows in the log.
func (s *ISS) requestEntries(id protocol.MemberID) {
	s.catchUp.requestedAt, s.catchUp.requestedAfter = s.now, s.log.Last()
	s.send(id, MsgAsk, Part{More: s.epoch == nil})
}

func onAsk(s *ISS, m *protocol.Message, p *Part) {
	if p.More {
		s.sendSnapshot(m.From)
		return
	}
	s.sendEntries(m.From, m.Commit)
}

// sendSnapshot asks for a snapshot for a member, unless one is under way.
func (s *ISS) sendSnapshot(to protocol.MemberID) {
	if to != s.cfg.Self && !s.catchUp.streaming[to] {
		s.catchUp.streaming[to] = true
		s.out.Snapshots = append(s.out.Snapshots, to)
	}
}

// snapshotSent: the member has it, or will ask again. If this member alone has what its log begins after, and cannot send a
// snapshot because the state here is damaged, it lets others find out what was decided: they accepted it.
func snapshotSent(s *ISS, in protocol.SnapshotSent) {
	delete(s.catchUp.streaming, in.To)
	alone := s.epoch != nil && protocol.Index(s.decides.Agreed(func(id protocol.MemberID) uint64 {
		if id == s.cfg.Self {
			return uint64(s.log.Last())
		}
		return uint64(s.commitOf(id))
	})) < s.log.Base
	for _, b := range s.parts {
		if in.Index == 0 && alone && b.prop.Phase == paxos.Ready {
			b.stepDown()
		}
	}
}

// snapshotReceived takes a snapshot that is ahead of what is known here to be decided. What was accepted after it in
// the same epoch stays.
func snapshotReceived(s *ISS, in protocol.SnapshotReceived) {
	if in.Base.Index <= s.log.Last() {
		return
	}
	base := in.Base
	base.Config = base.Config.Clone()
	history, err := historyAt(s.set, &base)
	if err != nil {
		return // the owner has found it to be sound
	}
	s.emitCommitted()
	s.disk.Install()
	s.record(protocol.Record{Kind: protocol.RecordBase, Base: &base})
	old := s.epoch
	has := slots.After(&base)
	s.log, s.conf, s.force, s.bodies = has.Log, has.Config, has.Config, has.Bodies
	s.hard.logged, s.hard.hurry = base.Index, false
	s.committed, s.unsettled, s.history, s.catchUp.grewAt = base.Index, 0, history, s.now
	s.top = max(s.top, base.Index)
	if now := history.Epoch(); old != nil && now.Number == old.Number {
		s.epoch = now // the same, made anew
		for _, b := range s.parts {
			b.dropBefore(base.Index)
		}
	} else {
		s.dropCells(s.parts)
		s.proposals.requeue()
		_ = s.open(nil)
		s.forwardQueue()
	}
	s.updateMembers()
	s.writeState()
	s.out.Install = &base
}

// dropBefore: a snapshot has the slots of the segment up to one.
func (b *broadcast) dropBefore(to protocol.Index) {
	for i := b.seg.After(b.seg.Before()); i <= min(to, b.seg.Last); i = b.seg.After(i) {
		if _, voted := b.acc.Votes[i]; voted {
			b.s.drop(uint64(i))
			delete(b.acc.Votes, i)
		}
		if e, ok := b.ownValues[i]; ok {
			delete(b.ownValues, i)
			b.open -= e.Bytes()
		}
		delete(b.decided, i)
		delete(b.values, i)
		delete(b.acc.Ahead, i)
	}
	b.skipToBase()
}

func unreachable(s *ISS, id protocol.MemberID) {
	for _, b := range s.parts {
		if p := b.peer(id); p != nil && len(p.Frames) > 0 {
			b.markLost(p)
		}
	}
	s.markStranded(id)
}
