package iss

import (
	"time"

	"github.com/braidlog/braid/internal/protocol/iss/epochs"
	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// Ballots from 1 on: a member that suspects a segment's leader has its slots decided.

// suspect takes a ballot if no proposer was active in the segment for long.
func (b *broadcast) suspect() {
	due := b.zeroState == retired || b.s.alone(b.s.cfg.Self)
	switch {
	case !due && b.s.now < b.suspectAt: // the usual case
	case b.complete() || b.prop.Phase != paxos.Idle || b.s.stalled() || !b.s.votes(b.s.cfg.Self):
	case due, b.revocationNeeded():
		b.elect()
	default: // random, so that members do not stand together once something is proposed
		b.suspectAt = b.s.now + time.Duration(b.s.chance.Draw()%uint64(b.s.cfg.ElectionTimeout/4))
	}
}

// revocationNeeded reports whether anything depends on the segment: a value after it, a waiting proposal, or the
// leader of all. If its leader will be banned for it, or for longer than before, it is always needed, so that later
// proposals do not wait. Otherwise each of its epochs would have to be revoked again, and an idle cluster would
// fill its log for as long as a member is down.
func (b *broadcast) revocationNeeded() bool {
	s := b.s
	return !s.history.Spent(b.leader) || s.ending || s.top > s.log.Last() || len(s.proposals.queue) > 0 ||
		s.proposals.change != nil || s.unsettled > 0 ||
		b.leader == s.leads()
}

// elect takes a new ballot and asks for promises. A member uses a ballot once: it promises it to itself, durably,
// before it asks others (S7). Without answers it keeps the ballot and repeats the question.
func (b *broadcast) elect() {
	self := b.s.epochConf.Find(b.s.cfg.Self) // it votes until the end of the epoch, even if the log removes it
	if self == nil {
		return
	}
	b.stepDown()
	if b.zeroState == retired {
		b.zeroState = active
	}
	b.promiseTo(b.s.cfg.Self, max(b.acc.Promised, b.seen).After(self))
	b.promisedAt = b.s.disk.Written
	b.proposer = b.s.cfg.Self
	b.prop.Begin(b.acc.Promised, b.upto)
	b.track()
	b.sendPrepares()
	b.tally()
}

// sendPrepares asks acceptors for promises that have not answered. The first question under a new ballot waits
// until that is durable.
func (b *broadcast) sendPrepares() {
	for _, id := range b.s.epoch.Voters {
		if id == b.s.cfg.Self {
			continue
		}
		if a := b.prop.Request(id, b.upto); !a.Done && b.s.now >= a.RetryAt {
			b.sendPrepare(a)
		}
	}
}

func (b *broadcast) sendPrepare(a *paxos.Request) {
	first := a.RetryAfter == 0
	a.RetryAfter = min(max(2*a.RetryAfter, b.s.cfg.Heartbeat), b.s.cfg.ElectionTimeout)
	a.RetryAt, a.Asked = b.s.now+a.RetryAfter, a.Next
	p := Part{Ballot: b.prop.Ballot, Slot: a.Next}
	switch {
	case b.s.cfg.Mutant == MutantBallotReused, !first && b.s.disk.Done >= b.promisedAt:
		b.send(a.ID, MsgPrepare, p)
	case first:
		b.release(a.ID, MsgPrepare, p)
	}
}

// ignoresPrepare reports whether to ignore a candidate because another proposer is active.
func (b *broadcast) ignoresPrepare(from protocol.MemberID) bool {
	switch {
	case b.proposer == 0 || b.proposer == from || from == b.leader:
		return false
	case b.proposer == b.s.cfg.Self:
		return b.prop.Phase == paxos.Ready && b.s.quorate()
	}
	return b.s.now < b.heardAt+b.s.cfg.ElectionTimeout
}

// onPrepare is phase 1 at an acceptor.
func onPrepare(b *broadcast, m *protocol.Message, p *Part) {
	switch {
	case b.seg.After(p.Upto) <= b.s.log.Last():
		b.s.heartbeat(m.From) // it has to learn first what the log has
		return
	case b.ignoresPrepare(m.From):
		return
	case p.Ballot < b.acc.Promised:
		b.send(m.From, MsgRefused, Part{Ballot: b.acc.Promised})
		return
	}
	b.promiseTo(m.From, p.Ballot)
	b.noteProposer(m.From)
	answer, entries := b.report(p)
	b.answer(m.From, MsgPromise, answer, MutantPromiseEarly).Entries = entries
}

// mostReported is how many entries a promise may have.
const mostReported = 1024

// report lists the decisions and votes of this member from a slot on, as many as fit into one message (S8).
func (b *broadcast) report(p *Part) (answer Part, entries []protocol.Entry) {
	from := max(p.Slot, b.s.log.Last()+1)
	answer = Part{Ballot: p.Ballot, Slot: p.Slot, Hint: b.seg.Last, Nil: b.nils.After(from - 1)}
	if b.s.cfg.Mutant == MutantHidesDecided {
		answer.Nil = nil
	}
	bytes := 0
	for i := b.seg.After(from - 1); i <= b.seg.Last; i = b.seg.After(i) {
		ballot, v, ok := b.has(i)
		if !ok {
			continue
		}
		if bytes += v.Bytes(); len(entries) > 0 && (bytes > b.s.cfg.MaxFrameBytes || len(entries) == mostReported) {
			answer.Hint, answer.More = i-1, true
			break
		}
		entries, answer.Ballots = append(entries, v), append(answer.Ballots, ballot)
	}
	if b.leader == b.s.cfg.Self {
		answer.Never = b.declare(from)
	}
	return answer, entries
}

// has returns what this member has of a slot that is not in the log: the decision, or its vote. Slots that are ⊥
// are listed elsewhere.
func (b *broadcast) has(i protocol.Index) (paxos.Ballot, protocol.Entry, bool) {
	if v, ok := b.decided[i]; ok {
		return known, v, !isNil(&v) && b.s.cfg.Mutant != MutantHidesDecided
	}
	v, ok := b.acc.Votes[i]
	return v.Ballot, v.Entry, ok && b.s.cfg.Mutant != MutantPromiseForgets
}

// declare lists the slots in which this member, the segment's leader, proposes nothing: those in which this
// incarnation has not proposed, if no earlier one can have (S6). The promise binds it (S5).
func (b *broadcast) declare(from protocol.Index) (never paxos.Spans) {
	if b.acc.Started && b.startedAt == 0 && b.s.cfg.Mutant != MutantNeverFromDisk {
		return nil
	}
	for i := b.seg.After(from - 1); i <= b.seg.Last; i = b.seg.After(i) {
		_, proposed := b.ownValues[i]
		_, voted := b.acc.Votes[i]
		if v, decided := b.decided[i]; !proposed && !voted && (!decided || isNil(&v)) {
			never = never.With(&b.seg, i)
		}
	}
	return never
}

// onPromise adds what an acceptor has, and asks for the rest. If the acceptor's log has slots of the segment that
// are undecided here, it is asked for those first.
func onPromise(b *broadcast, m *protocol.Message, p *Part) {
	if b.prop.Phase != paxos.Preparing || p.Ballot != b.prop.Ballot {
		return
	}
	b.resetTimeout()
	if b.seg.After(b.upto) <= m.Commit {
		b.s.requestEntries(m.From)
		return
	}
	if !b.addPromise(m, p) || b.prop.Phase != paxos.Preparing {
		return
	}
	a := b.prop.Request(m.From, b.upto)
	if !a.Report(p.Slot, p.Hint, p.More) {
		return
	}
	if !a.Done {
		a.RetryAt = 0
		b.sendProgress()
		b.sendPrepares()
	}
	b.tally()
}

// sendProgress tells acceptors that have promised everything that phase 1 is in progress while other promises
// arrive in parts, so that none of them takes a ballot.
func (b *broadcast) sendProgress() {
	if b.s.now < b.heartbeatAt {
		return
	}
	b.heartbeatAt = b.s.now + b.s.cfg.Heartbeat
	for _, a := range b.prop.Requests {
		if a.Done {
			b.send(a.ID, MsgAccept, Part{Ballot: b.prop.Ballot})
		}
	}
}

// addPromise adds the contents of a promise. It reports whether all of it is usable.
func (b *broadcast) addPromise(m *protocol.Message, p *Part) bool {
	if len(p.Ballots) != len(m.Entries) {
		return false
	}
	for i := range m.Entries {
		e := &m.Entries[i]
		if !b.seg.Has(e.Index) || !slots.Readable(e) || p.Ballots[i] != known && !b.acc.Whole(e) {
			return false
		}
	}
	p.Nil.Each(&b.seg, func(i protocol.Index) { b.decide(b.bottom(i)) })
	if m.From == b.leader {
		b.never = p.Never
	}
	for i := range m.Entries {
		switch v := m.Entries[i]; {
		case p.Ballots[i] == known:
			b.decide(v)
		case !b.isDecided(v.Index):
			b.prop.AddVote(paxos.Vote{Ballot: p.Ballots[i], Entry: v}, false)
		}
	}
	return true
}

// tally ends phase 1 if a quorum has promised. This member's own votes count too.
func (b *broadcast) tally() {
	self := b.s.cfg.Self
	if b.s.disk.Done < b.promisedAt && b.s.cfg.Mutant != MutantBallotReused {
		self = 0
	}
	if b.prop.Phase != paxos.Preparing || !b.prop.Promised(b.s.elects, self) {
		return
	}
	for i := b.seg.After(b.upto); i <= b.seg.Last; i = b.seg.After(i) {
		if v, ok := b.acc.Votes[i]; ok && !b.isDecided(i) {
			b.prop.AddVote(v, false)
		}
	}
	if b.leader == b.s.cfg.Self {
		b.never = b.declare(b.seg.First)
	}
	b.prop.BecomeReady()
	b.decideAll()
	b.heartbeatAt = 0
}

// stopping reports whether this member is about to stop, and others would lead in the next epochs.
func (s *ISS) stopping() bool {
	return s.now < s.leaving && s.set.Policy != epochs.Simple && len(s.epoch.Voters) > 1
}

// quitsBallotZero reports whether this member has to revoke its own segment because it is about to stop. A higher
// ballot may decide ⊥ in the last slot. Then the member is suspected as if it had crashed, and the next epochs do
// not wait for it.
func (b *broadcast) quitsBallotZero() bool {
	return b.s.stopping() && b.acc.Promised == 0 && !b.complete() && !b.s.stalled() && b.s.quorate()
}

// decideAll proposes a value in every undecided slot: what was found, or ⊥. A segment's own leader that was elected
// for it proposes its empty value in the last slot, because it serves.
func (b *broadcast) decideAll() {
	for b.seg.After(b.prop.End) <= b.seg.Last {
		i, v, _, found := b.prop.NextSlot()
		switch {
		case b.isDecided(i):
			b.prop.MarkProposed()
		case found:
			b.proposeElected(v.Entry)
		case b.skippable(i):
			b.prop.MarkProposed()
			b.decide(b.bottom(i))
		case i == b.seg.Last && b.leader == b.s.cfg.Self && !b.s.stopping():
			b.proposeElected(b.seal(protocol.NewEmpty(b.leader), i))
		default:
			b.proposeElected(b.bottom(i))
		}
	}
}

// proposeElected proposes an entry under an elected proposer's ballot.
func (b *broadcast) proposeElected(v protocol.Entry) {
	b.vote(v)
	b.addValue(v)
}

// skippable reports whether ⊥ needs no votes in a slot: no proposer can ever propose anything else there (S4). With
// NoSkip it always needs them.
func (b *broadcast) skippable(i protocol.Index) bool {
	return b.never.Has(i) && i != b.seg.Last && !b.s.opt.noSkip || b.s.cfg.Mutant == MutantSkipElected
}
