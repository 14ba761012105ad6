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

// other is this member's view of another one.
type other struct {
	id       protocol.MemberID
	heard    time.Duration // when its last message arrived
	answered bool          // at all
	epoch    uint64        // the last one in which it was known to be; 0: none
	// commit is the last slot of its log, and logged the last one on its disk, as it last reported.
	commit, logged protocol.Index
	// has is the last slot of its log in its current incarnation. It may have forgotten what it had in an earlier
	// one, so this falls if it reports less.
	//
	//	has ≤ commit
	has     protocol.Index
	lacking bool          // bodies of decided entries are missing there
	trip    time.Duration // the shortest recent round trip; 0: none was measured
	sending sending       // the entries that this member sends it
	// unsent is a slot up to which it was not sent everything when that slot's epoch ended; 0: there is none.
	unsent protocol.Index
	// leaving is when messages to it end; 0: it is a member.
	leaving time.Duration
}

// members are the other members, and how this one reaches them.
type members struct {
	self protocol.MemberID
	// others are all members but this one, sorted by id.
	others []*other
	// relays are the groups of the others, and their relays.
	relays      relay.Relays
	relayGroups int // into how many groups this member puts the others; 0: it sends to all
	// heartbeatAt is when this member sends its next heartbeat, and endAtHeartbeat where the log ended at the last one.
	heartbeatAt    time.Duration
	endAtHeartbeat protocol.Index
	// noQuorum: at that heartbeat the active members were no quorum that decides.
	noQuorum bool
}

// updateMembers updates the other members to the epoch and the last configuration. Members that left are sent
// messages for a while: no other member sends them the end of the epoch.
func (s *ISS) updateMembers() {
	all := append(s.conf.All(), s.epochVoters()...)
	for _, id := range all {
		at, known := slices.BinarySearchFunc(s.others, id,
			func(o *other, id protocol.MemberID) int { return cmp.Compare(o.id, id) })
		if id != s.cfg.Self && !known {
			s.others = slices.Insert(s.others, at, &other{id: id, heard: s.now})
		}
	}
	for _, o := range s.others {
		switch {
		case slices.Contains(all, o.id), slices.Contains(s.woven.retained, o.id):
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

// removeDeparted removes members that left long ago.
func (s *ISS) removeDeparted() {
	n := len(s.others)
	s.others = slices.DeleteFunc(s.others, func(o *other) bool { return o.leaving > 0 && s.now >= o.leaving })
	for _, b := range s.parts {
		if b.prop.Phase != paxos.Idle && n != len(s.others) {
			b.track()
		}
	}
}

// usualPlace is a member's place among the others if the ids are 1, 2, 3 …, as is usual.
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
	at, ok := slices.BinarySearchFunc(g.others, id,
		func(o *other, id protocol.MemberID) int { return cmp.Compare(o.id, id) })
	if !ok {
		return nil
	}
	return g.others[at]
}

// commitOf is the last slot of a member's log, as far as is known.
func (g *members) commitOf(id protocol.MemberID) protocol.Index {
	if o := g.other(id); o != nil {
		return o.commit
	}
	return 0
}

// hasOf is the last slot of a member's log in its current incarnation, as far as is known. Slots up to it need not
// be listed as ⊥.
func (g *members) hasOf(id protocol.MemberID) protocol.Index {
	if o := g.other(id); o != nil {
		return o.has
	}
	return 0
}

// loggedOf is the last slot of a member's log on its disk, as far as is known. It does not fall if the member
// restarts.
func (g *members) loggedOf(id protocol.MemberID) protocol.Index {
	if o := g.other(id); o != nil {
		return o.logged
	}
	return 0
}

// active reports whether a message of a member arrived within an election timeout.
func (s *ISS) active(o *other) bool { return o.answered && s.now < o.heard+s.cfg.ElectionTimeout }

// quorate reports whether a quorum for phase 2 is active.
func (s *ISS) quorate() bool {
	return s.decides.Vote(func(id protocol.MemberID) quorum.Answer {
		if o := s.other(id); id == s.cfg.Self || o != nil && s.active(o) {
			return quorum.Granted
		}
		return quorum.Missing
	}) == quorum.Won
}

// recordTrip records a round trip that a segment measured.
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

// inReach reports whether a member can use messages about the epoch's segments: it is in the epoch, or in the one
// before. Otherwise it drops them, and they would only delay the entries that it needs first.
func (s *ISS) inReach(id protocol.MemberID) bool {
	o := s.other(id)
	return o == nil || o.epoch == 0 || o.epoch+1 >= s.number()
}

// heartbeat sends how far this member is, and whether it serves as a leader. It does not serve if its disk is
// stalled, or without an active quorum.
func (s *ISS) heartbeat(to protocol.MemberID) {
	serving := s.own != nil && s.own.zero() && s.quorate() && !s.stalled()
	p := Part{Slot: s.disk.Durable.Last, Upto: s.top, Serving: serving, Lacking: s.bodies.Missing}
	if o := s.other(to); o != nil {
		p.Hint = o.logged
	}
	s.send(to, MsgBeat, p)
}

// forgets reports whether a message shows that this member's disk had more of the log than it has
// (docs/internals/identity.md). It is checked from the start on, before the first tick: later the log may have
// grown beyond it.
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
		s.requestEntries(m.From) // also from unknown members (R7)
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

// runHeartbeat sends heartbeats, and asks for missing entries. A member that receives nothing for long may have
// been removed, or not know yet who the members are.
func (s *ISS) runHeartbeat() {
	if s.now < s.heartbeatAt {
		return
	}
	s.heartbeatAt = s.now + s.cfg.Heartbeat
	if noQuorum := s.epoch != nil && !s.quorate(); noQuorum != s.noQuorum {
		s.noQuorum, s.out.Changed = noQuorum, true
	}
	s.relays.Turn++
	s.removeDeparted()
	s.learnPending() // drops what has been learned otherwise
	for _, o := range s.others {
		s.heartbeat(o.id)
	}
	s.promote()
	s.endAtHeartbeat = s.log.Last()
	c := &s.catchUp
	if ahead := s.ahead(s.log.Last(), s.active); ahead != nil && s.now >= c.grewAt+s.cfg.Heartbeat &&
		s.now >= c.requestedAt+c.retryAfter {
		// The answer may be on a slow link.
		c.retryAfter = min(max(2*c.retryAfter, s.cfg.Heartbeat), s.cfg.ElectionTimeout)
		s.requestEntries(ahead.id)
	}
	if s.now >= s.lastHeard()+2*s.cfg.ElectionTimeout {
		for _, o := range s.others {
			s.requestEntries(o.id)
		}
	}
}

// ahead is the active member with the longest log, if that is longer than this one's.
func (g *members) ahead(last protocol.Index, active func(*other) bool) (most *other) {
	for _, o := range g.others {
		if o.commit > last && active(o) && (most == nil || o.commit > most.commit) {
			most = o
		}
	}
	return most
}

// lastHeard is when the last message of any other member arrived.
func (g *members) lastHeard() (at time.Duration) {
	for _, o := range g.others {
		at = max(at, o.heard)
	}
	return at
}

// requestEntries asks a member for the entries after the log's end.
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

// sendSnapshot requests a snapshot for a member unless one is being sent.
func (s *ISS) sendSnapshot(to protocol.MemberID) {
	if to != s.cfg.Self && !s.catchUp.streaming[to] {
		s.catchUp.streaming[to] = true
		s.out.Snapshots = append(s.out.Snapshots, to)
	}
}

// snapshotSent continues after a snapshot. A member that did not get it asks again. If this member alone has what
// its log begins after, and cannot send a snapshot because the state here is damaged, it steps down: the others
// recover what was decided, which they accepted.
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

// snapshotReceived installs a snapshot that is ahead of what is known here to be decided. Votes after it are kept
// if they are of the same epoch.
func snapshotReceived(s *ISS, in protocol.SnapshotReceived) {
	if in.Base.Index <= s.log.Last() || s.closed() {
		return // a closed core has all that was decided before the seal
	}
	base := in.Base
	base.Config = base.Config.Clone()
	history, err := historyAt(s.set, &base)
	if err != nil || !s.tune(&base.Config) {
		return // the caller has verified the history
	}
	s.emitCommitted()
	s.disk.Install()
	s.record(protocol.Record{Kind: protocol.RecordBase, Base: &base})
	old := s.epoch
	has := slots.After(&base)
	s.log, s.conf, s.epochConf, s.bodies = has.Log, has.Config, has.Config, has.Bodies
	s.hard.logged, s.hard.hurry = base.Index, false
	s.committed, s.unsettled, s.history, s.catchUp.grewAt = base.Index, 0, history, s.now
	s.top = max(s.top, base.Index)
	s.seal.Install()
	if now := history.Epoch(); old != nil && now.Number == old.Number {
		s.epoch = now // the same epoch, rebuilt
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

// dropBefore drops the slots of the segment up to one: a snapshot has them. If this member proposed in one of them,
// another member may have had something else decided there, which is not known here. So it steps down.
func (b *broadcast) dropBefore(to protocol.Index) {
	for i := b.seg.After(b.seg.Before()); i <= min(to, b.seg.Last); i = b.seg.After(i) {
		if _, open := b.values[i]; open && b.s.cfg.Mutant != MutantSnapshotKept {
			b.stepDown()
		}
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
