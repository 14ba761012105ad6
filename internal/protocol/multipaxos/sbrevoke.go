package multipaxos

import (
	"time"

	"github.com/braidlog/braid/internal/protocol/iss/epochs"
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// Ballots from 1 on: whoever suspects a segment's leader has its slots decided.

// suspect stands if nobody was heard of in the segment for long.
func (b *broadcast) suspect() {
	due := b.life == retired || b.s.alone()
	switch {
	case !due && b.s.now < b.stand: // as mostly
	case b.complete() || b.prop.phase != idle || b.s.stalled() || !b.s.votes(b.s.cfg.Self):
	case due, b.wanted():
		b.elect()
	default: // chance keeps members apart when something comes
		b.stand = b.s.now + time.Duration(b.s.chance.Draw()%uint64(b.s.cfg.ElectionTimeout/4))
	}
}

// wanted reports whether anything depends on the segment: a value after it, something that waits, or a leader of all. If
// its leader will be banned for it, or for longer than before, it always is: what comes later does not have to wait then.
// Otherwise each of its epochs would have to be revoked again, and a cluster that has nothing to do would fill its log for as
// long as a member is away.
func (b *broadcast) wanted() bool {
	s := b.s
	return !s.history.Spent(b.leader) || s.ending || s.top > s.log.Last() || len(s.queue) > 0 || s.change != nil || s.unsettled > 0 ||
		b.leader == s.leads()
}

// elect takes a new ballot, and asks for promises. A member uses a ballot once: it promises it to itself, durably,
// before it asks others (S7). One that nobody answers keeps its ballot and goes on asking.
func (b *broadcast) elect() {
	self := b.s.force.Find(b.s.cfg.Self) // it votes to the end of the epoch, also if the epoch's log removes it
	if self == nil {
		return
	}
	b.giveWay()
	if b.life == retired {
		b.life = active
	}
	b.promiseTo(b.s.cfg.Self, max(b.acc.promised, b.seen).After(self))
	b.promisedAt = b.s.disk.Written
	b.driver = b.s.cfg.Self
	b.prop.begin(b.acc.promised, b.upto)
	b.track()
	b.tendPrepare()
	b.tally()
}

// tendPrepare asks those for a promise that have not answered. The first question after a new ballot waits until
// that is durable.
func (b *broadcast) tendPrepare() {
	for _, id := range b.s.epoch.Voters {
		if id == b.s.cfg.Self {
			continue
		}
		if a := b.prop.ask(id, b.upto); !a.done && b.s.now >= a.again {
			b.askPromise(a)
		}
	}
}

func (b *broadcast) askPromise(a *asked) {
	first := a.pause == 0
	a.pause = min(max(2*a.pause, b.s.cfg.Heartbeat), b.s.cfg.ElectionTimeout)
	a.again = b.s.now + a.pause
	p := ISSPart{Ballot: b.prop.ballot, Slot: a.next}
	switch {
	case b.s.cfg.Mutant == MutantISSBallotReused, !first && b.s.disk.Done >= b.promisedAt:
		b.send(a.id, MsgISSPrepare, p)
	case first:
		b.release(a.id, MsgISSPrepare, p)
	}
}

// faithful reports whether to ignore who wants a promise: somebody proposes, and was heard of just now.
func (b *broadcast) faithful(from protocol.MemberID) bool {
	switch {
	case b.driver == 0 || b.driver == from || from == b.leader:
		return false
	case b.driver == b.s.cfg.Self:
		return b.prop.phase == ready && b.s.quorate()
	}
	return b.s.now < b.heard+b.s.cfg.ElectionTimeout
}

// onPrepare is phase 1 at an acceptor.
func (b *broadcast) onPrepare(m *protocol.Message, p *ISSPart) {
	switch {
	case b.seg.after(p.Upto) <= b.s.log.Last():
		b.s.beat(m.From) // it has to learn first what is in the log
		return
	case b.faithful(m.From):
		return
	case p.Ballot < b.acc.promised:
		b.send(m.From, MsgISSRefused, ISSPart{Ballot: b.acc.promised})
		return
	}
	b.promiseTo(m.From, p.Ballot)
	b.hear(m.From)
	answer, entries := b.report(p)
	b.answer(m.From, MsgISSPromise, answer, MutantISSPromiseEarly).Entries = entries
}

// mostReported is how many entries a promise may have.
const mostReported = 1024

// report lists what this member has of the slots from one on, as much as goes into one message: decisions and
// votes (S8).
func (b *broadcast) report(p *ISSPart) (answer ISSPart, entries []protocol.Entry) {
	from := max(p.Slot, b.s.log.Last()+1)
	answer = ISSPart{Ballot: p.Ballot, Slot: p.Slot, Hint: b.seg.last, Nil: b.nils.beyond(from - 1)}
	if b.s.cfg.Mutant == MutantISSHidesDecided {
		answer.Nil = nil
	}
	bytes := 0
	for i := b.seg.after(from - 1); i <= b.seg.last; i = b.seg.after(i) {
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

// has is what this member has of a slot that is not in the log: the value that is decided, or its vote. What is ⊥ for
// certain is named elsewhere.
func (b *broadcast) has(i protocol.Index) (Ballot, protocol.Entry, bool) {
	if v, ok := b.decided[i]; ok {
		return known, v, !isNil(&v) && b.s.cfg.Mutant != MutantISSHidesDecided
	}
	v, ok := b.acc.votes[i]
	return v.ballot, v.entry, ok && b.s.cfg.Mutant != MutantISSPromiseForgets
}

// declare lists the slots in which this member, which leads the segment, never proposes anything: those in which this
// life has not, if no earlier one can have (S6). The promise that it gives binds it (S5).
func (b *broadcast) declare(from protocol.Index) (never spans) {
	if b.acc.started && b.startedAt == 0 && b.s.cfg.Mutant != MutantNeverFromDisk {
		return nil
	}
	for i := b.seg.after(from - 1); i <= b.seg.last; i = b.seg.after(i) {
		_, proposed := b.mine[i]
		_, voted := b.acc.votes[i]
		if v, decided := b.decided[i]; !proposed && !voted && (!decided || isNil(&v)) {
			never = never.with(&b.seg, i)
		}
	}
	return never
}

// onPromise takes in what an acceptor has, and asks it for the rest. One that knows more to be decided is asked for that
// first.
func (b *broadcast) onPromise(m *protocol.Message, p *ISSPart) {
	if b.prop.phase != preparing || p.Ballot != b.prop.ballot {
		return
	}
	b.rest()
	if b.seg.after(b.upto) <= m.Commit {
		b.s.ask(m.From)
		return
	}
	if !b.takePromised(m, p) || b.prop.phase != preparing {
		return
	}
	a := b.prop.ask(m.From, b.upto)
	if p.Slot > a.next || p.Hint+1 < a.next {
		return // to an earlier question
	}
	a.next, a.done, a.pause = p.Hint+1, !p.More, 0
	if !a.done {
		a.again = 0
		b.goOn()
		b.tendPrepare()
	}
	b.tally()
}

// goOn lets those that have told all wait while others' promises come in parts, so that none of them stands meanwhile.
func (b *broadcast) goOn() {
	if b.s.now < b.beat {
		return
	}
	b.beat = b.s.now + b.s.cfg.Heartbeat
	for _, a := range b.prop.asked {
		if a.done {
			b.send(a.id, MsgISSAccept, ISSPart{Ballot: b.prop.ballot})
		}
	}
}

// takePromised takes in what a promise says, and reports whether all of it is here.
func (b *broadcast) takePromised(m *protocol.Message, p *ISSPart) bool {
	if len(p.Ballots) != len(m.Entries) {
		return false
	}
	for i := range m.Entries {
		e := &m.Entries[i]
		if !b.seg.has(e.Index) || !slots.Readable(e) || p.Ballots[i] != known && !b.whole(e) {
			return false
		}
	}
	p.Nil.within(&b.seg, func(i protocol.Index) { b.decide(b.bottom(i)) })
	if m.From == b.leader {
		b.never = p.Never
	}
	for i := range m.Entries {
		switch v := m.Entries[i]; {
		case p.Ballots[i] == known:
			b.decide(v)
		case !b.knows(v.Index):
			b.prop.note(vote{ballot: p.Ballots[i], entry: v}, false)
		}
	}
	return true
}

// tally ends phase 1 if a quorum has promised. What this member itself has accepted counts too.
func (b *broadcast) tally() {
	self := b.s.cfg.Self
	if b.s.disk.Done < b.promisedAt && b.s.cfg.Mutant != MutantISSBallotReused {
		self = 0
	}
	if b.prop.phase != preparing || !b.prop.promised(b.s.elects, self) {
		return
	}
	for i := b.seg.after(b.upto); i <= b.seg.last; i = b.seg.after(i) {
		if v, ok := b.acc.votes[i]; ok && !b.knows(i) {
			b.prop.note(v, false)
		}
	}
	if b.leader == b.s.cfg.Self {
		b.never = b.declare(b.seg.first)
	}
	b.prop.settle()
	b.decideAll()
	b.beat = 0
}

// quitting reports whether this member is about to stop, and others would lead in the next epochs.
func (s *ISS) quitting() bool {
	return s.now < s.leaving && s.set.Policy != epochs.Simple && len(s.epoch.Voters) > 1
}

// quits reports whether this member has to take its own segment out of ballot 0, because it is about to stop. A higher
// ballot may decide ⊥ in the last slot. So the member is suspected, as if it was dead already, and the next epochs do
// not wait for it.
func (b *broadcast) quits() bool {
	return b.s.quitting() && b.acc.promised == 0 && !b.complete() && !b.s.stalled() && b.s.quorate()
}

// decideAll proposes something in every slot that is not decided: what was found, or ⊥. A segment's own leader that
// stands for it again proposes its empty value in the last slot, because it serves.
func (b *broadcast) decideAll() {
	for b.seg.after(b.prop.end) <= b.seg.last {
		i, v, _, found := b.prop.next()
		switch {
		case b.knows(i):
			b.prop.proposed()
		case found:
			b.again(v.entry)
		case b.free(i):
			b.prop.proposed()
			b.decide(b.bottom(i))
		case i == b.seg.last && b.leader == b.s.cfg.Self && !b.s.quitting():
			b.again(b.seal(protocol.NewEmpty(b.leader), i))
		default:
			b.again(b.bottom(i))
		}
	}
}

// again proposes an entry under an elected proposer's ballot.
func (b *broadcast) again(v protocol.Entry) {
	b.vote(v)
	b.putUp(v)
}

// free reports whether ⊥ needs no votes in a slot: nobody can ever propose anything else there (S4). With NoSkip it
// always needs them.
func (b *broadcast) free(i protocol.Index) bool {
	return b.never.has(i) && i != b.seg.last && !b.s.cfg.NoSkip || b.s.cfg.Mutant == MutantSkipElected
}
