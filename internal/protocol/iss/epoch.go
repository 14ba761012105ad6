package iss

import (
	"github.com/braidlog/braid/internal/protocol/iss/epochs"
	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// applyEntry updates the history and the configuration with an entry of the log.
func (s *ISS) applyEntry(e *protocol.Entry) {
	if s.epoch == nil {
		return
	}
	s.noteSeal(e)
	was := s.history.Epoch()
	replaced := false
	if e.Kind == protocol.EntryConfig {
		replaced = !s.tunesOnly(e)
		s.conf, _ = protocol.DecodeConfig(e.Payload) // it was checked when it was accepted
		s.epochConf.Profile = s.conf.Profile
	}
	s.advanceHistory(e, replaced)
	if s.history.Epoch() != was {
		if s.out != nil && s.cfg.Merged && !s.epochConf.Equal(&s.conf) {
			s.out.Changed = true // other instances follow it
		}
		s.epochConf = s.conf
	}
}

// advanceHistory applies an entry to the history. replaced: it has other members than those before it.
func (s *ISS) advanceHistory(e *protocol.Entry, replaced bool) {
	if s.unsettled > 0 && !isNil(e) && s.history.Epoch().First > s.unsettled {
		s.unsettled = 0
	}
	if replaced && s.unsettled == 0 {
		s.unsettled = e.Index
	}
	if !isNil(e) {
		s.top = max(s.top, e.Index)
	}
	if isNil(e) || s.leftOut(e) {
		s.history.Pass(e.Index)
		return
	}
	s.history.Apply(e)
}

// open begins the epoch of the slot after the log's last. cells are those of an earlier incarnation.
func (s *ISS) open(cells []protocol.Cell) error {
	s.epoch = s.history.Epoch()
	s.parts, s.own, s.used, s.ending, s.fillAt = nil, nil, 0, false, 0
	if s.epoch == nil {
		return nil
	}
	s.ending = s.seal.First() >= s.epoch.First
	voters := quorum.Set{Incoming: s.epoch.Voters, Zones: s.epoch.Zones}
	s.elects, s.decides = s.quorums.Elects(voters), s.quorums.Decides(voters)
	if s.cfg.Mutant == MutantElectTooFew {
		s.elects = s.decides
	}
	s.updateMembers()
	for _, id := range s.epoch.Leaders {
		b, err := newBroadcast(s, id, cells)
		if err != nil {
			return err
		}
		s.parts = append(s.parts, b)
		if id == s.cfg.Self {
			s.own = b
		}
		s.top = max(s.top, b.acc.Top)
		s.ending = s.ending || b.acc.Promised > 0
	}
	s.route()
	return nil
}

// staleCells returns the cells of slots that the log has, and of segments of earlier epochs. They were about to be
// dropped.
func staleCells(cells []protocol.Cell, last protocol.Index, epoch *epochs.Epoch) (stale []uint64) {
	for _, c := range cells {
		old := c.Number <= uint64(last)
		if c.Number&paxos.SegmentCell != 0 {
			first := protocol.Index(c.Number &^ paxos.SegmentCell)
			old = epoch != nil && first < epoch.First
		}
		if old {
			stale = append(stale, c.Number)
		}
	}
	return stale
}

// noteValue records a value in a slot of a segment.
func (s *ISS) noteValue(b *broadcast, v *protocol.Entry) {
	t := &s.epochState
	if !isNil(v) {
		t.top = max(t.top, v.Index)
	}
	if b != t.own && !isNil(v) {
		t.used = max(t.used, v.Index)
	}
	t.ending = t.ending || v.Index == b.seg.Last || v.Kind == protocol.EntryConfig && !s.tunesOnly(v) ||
		v.Kind == protocol.EntrySeal
}

// noteUsed records a slot of the epoch up to which others have values, or votes for them. Their proposer may have
// no link to this member. This member must fill its free slots before them all the same: no other member can, until
// it is suspected.
func (s *ISS) noteUsed(to protocol.Index) {
	if to <= s.used || s.holder(to) == nil || s.cfg.Mutant == MutantUsedUnheard {
		return
	}
	s.used = to
	s.ending = s.ending || to == s.holder(to).seg.Last
}

// proposeOwn proposes in this member's segment: it begins ballot 0, proposes what waits, and keeps up with the
// others. Free slots before a value of another segment would only delay that value. If the epoch is ending, all are
// filled.
func (s *ISS) proposeOwn() {
	b := s.own
	if b == nil {
		return
	}
	if b.quitsBallotZero() {
		s.fillAt = 0
		b.elect()
		return
	}
	if b.prop.Phase == paxos.Idle {
		b.start()
	}
	s.fill(b)
	switch {
	case !b.zero():
		s.fillAt = 0
	case s.ending:
		s.fillBefore(b, paxos.Beyond)
	default:
		s.fillBefore(b, s.used)
	}
}

// fillBefore fills the free slots before one. With SkipWait it first waits for commands, from the moment on at
// which the slots delay others. A command that arrives meanwhile does not extend the wait, so a value of another
// leader waits once.
func (s *ISS) fillBefore(b *broadcast, to protocol.Index) {
	switch {
	case !b.hasFreeSlot() || b.seg.After(b.prop.End) >= to:
		s.fillAt = 0
		return
	case s.fillAt == 0 && s.opt.skipWait > 0:
		s.fillAt = s.now + s.opt.skipWait
	}
	if s.now >= s.fillAt {
		s.fillAt = 0
		b.skipTo(to)
	}
}

// advance appends decisions without a gap to the log. It reports whether the next epoch has begun.
func (s *ISS) advance() bool {
	for s.epoch != nil && !s.waits() {
		i := s.log.Last() + 1
		b := s.parts[s.epoch.Place(i)]
		if i > b.upto {
			return false
		}
		s.appendSlot(b, i)
		if s.log.Last() == b.turns.Epoch().Last {
			return true
		}
	}
	return false
}

// appendDecided appends what is decided in the slot after the log's last.
func (s *ISS) appendDecided(e protocol.Entry) {
	b := s.parts[s.epoch.Place(e.Index)]
	if !b.isDecided(e.Index) {
		b.decide(e)
	} else {
		b.compare(&e)
	}
	s.appendSlot(b, e.Index)
}

// appendSlot appends the decision in the slot after the log's last, of a segment.
func (s *ISS) appendSlot(b *broadcast, i protocol.Index) {
	e := b.decided[i]
	delete(b.decided, i)
	s.hard.hurry = s.hard.hurry || !isNil(&e) && !b.acc.Holds(&e)
	s.log.Append(e)
	s.counter.count(&e)
	s.catchUp.grewAt, s.catchUp.retryAfter = s.now, 0
	s.bodies.Learned(&e)
	s.applyEntry(&e)
	if e.Kind == protocol.EntryConfig {
		s.tune(&s.epochConf)
		s.updateMembers()
	}
	if s.history.Epoch() != s.epoch {
		s.end()
	}
}

// end ends the epoch: all others are sent its last decisions, and the votes of the epoch are dropped, now that the
// log has all of it (C3).
func (s *ISS) end() {
	for _, b := range s.parts {
		if b.prop.Phase == paxos.Ready {
			b.replicateAll()
			s.noteUnsent(b)
		}
	}
	old := s.parts
	if s.cfg.Mutant == MutantClosedVotes {
		s.dropCells(old)
	}
	s.logAll()
	if s.cfg.Mutant != MutantClosedVotes {
		s.dropCells(old)
	}
	s.proposals.requeue()
	_ = s.open(nil) // without cells there is no error
	s.forwardQueue()
	s.receiveEarly()
}

// receiveEarly handles the messages that waited for the epoch to begin here.
func (s *ISS) receiveEarly() {
	early := s.early
	s.early, s.earlyBytes = nil, 0
	for _, m := range early {
		s.receive(m)
	}
}

// dropCells drops the cells of segments.
func (s *ISS) dropCells(parts []*broadcast) {
	for _, b := range parts {
		for i := b.seg.After(0); i <= b.seg.Last; i = b.seg.After(i) {
			if _, voted := b.acc.Votes[i]; voted {
				s.drop(uint64(i))
				delete(b.acc.Votes, i)
			}
		}
		if b.acc.Promised > 0 || b.acc.Started {
			s.drop(b.seg.PromiseCell())
		}
	}
}

// mostEarly bounds the messages of the next epoch that wait.
const mostEarly = 16 << 20

// partMemory is about how much memory a part of a message takes.
const partMemory = 200

// keepEarly keeps a message of the next epoch. Messages that do not fit are sent again.
func (s *ISS) keepEarly(m *protocol.Message) {
	s.requestIfBehind(m)
	bytes := protocol.MessageHeadSize + partMemory + paxos.Bytes(m.Entries)
	if s.earlyBytes+bytes <= mostEarly {
		s.early, s.earlyBytes = append(s.early, m), s.earlyBytes+bytes
	}
}

// requestIfBehind asks a member that has ended the epoch for its entries. If nothing was learned for a round trip,
// what others sent of the epoch's end was lost or did not fit.
func (s *ISS) requestIfBehind(m *protocol.Message) {
	o := s.other(m.From)
	if o == nil || m.Commit <= s.log.Last() || s.now < s.catchUp.grewAt+o.trip ||
		s.now < s.catchUp.requestedAt+s.catchUp.retryAfter {
		return
	}
	s.catchUp.retryAfter = min(max(2*s.catchUp.retryAfter, s.cfg.Heartbeat), s.cfg.ElectionTimeout)
	s.requestEntries(m.From)
}
