package iss

import (
	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// Phase 2 at the others.

// onAccept learns which slots are ⊥, whatever was promised (S3), and accepts the entries unless a higher ballot was
// promised.
func onAccept(b *broadcast, m *protocol.Message, p *Part) {
	from := proposerOf(m, p)
	if from == b.s.cfg.Self || p.Ballot == 0 && from != b.leader {
		return
	}
	b.s.from = from
	b.learnSkips(p.Nil)
	if p.Ballot < b.acc.Promised {
		b.send(from, MsgRefused, Part{Ballot: b.acc.Promised})
		return
	}
	for i := range m.Entries {
		if e := &m.Entries[i]; !b.seg.Has(e.Index) || !slots.Readable(e) || !b.acc.Whole(e) {
			return // no member sends this
		}
	}
	if b.prop.Phase != paxos.Idle && p.Ballot != b.prop.Ballot {
		b.stepDown()
	}
	b.promiseTo(from, p.Ballot)
	b.noteProposer(from)
	for i := range m.Entries {
		e := &m.Entries[i]
		if v, ok := b.acc.Votes[e.Index]; !b.isDecided(e.Index) && (!ok || v.Ballot != b.acc.Promised) {
			b.vote(*e)
		}
	}
	b.learnUpto(p)
	b.learnVoted()
	switch {
	case m.Type == MsgRelay:
		b.relay(m, p)
	case m.Context != 0:
		b.acknowledge(m, p)
	}
}

// learnSkips learns that ⊥ is decided in some slots. They are repeated until this member's log has them, so most
// are known.
func (b *broadcast) learnSkips(said paxos.Spans) {
	for _, x := range said {
		if at, has := b.nils.Find(x.From); has {
			x.From = b.seg.After(b.nils[at].To)
		}
		paxos.Spans{x}.Each(&b.seg, func(i protocol.Index) {
			if !b.nils.Has(i) {
				b.decide(b.bottom(i))
			}
		})
	}
}

// learnUpto learns that the slots up to one are decided, as far as this member has accepted there what the sender
// proposed under this ballot.
func (b *broadcast) learnUpto(p *Part) {
	for i := b.seg.After(b.upto); i <= min(p.Upto, b.seg.Last); i = b.seg.After(i) {
		if v, ok := b.acc.Votes[i]; ok && (v.Ballot == p.Ballot || b.s.cfg.Mutant == MutantLearnOlder) && !b.isDecided(i) {
			b.decide(v.Entry)
		}
	}
}

// acknowledge sends how far this member has accepted, when that is durable. Frames of one step are acknowledged
// together.
func (b *broadcast) acknowledge(m *protocol.Message, p *Part) {
	said := Part{Ballot: p.Ballot, Slot: b.acc.Reach, Hint: b.acc.Reach}
	if b.s.cfg.Mutant != MutantVoteEarly && b.amend(m, said) {
		return
	}
	b.accepted(m.From, said).Context = m.Context
	if m.Type == MsgAccept && len(m.Entries) > 0 {
		b.sendVotes(m.From, said)
	}
}

// answers are in the order in which they were sent.
type answers []answer

// answer is an answer that waits for the disk, and its place among the messages that do.
type answer struct {
	m  *protocol.Message
	at int
}

// accepted sends a member what this one has accepted.
func (b *broadcast) accepted(to protocol.MemberID, said Part) *protocol.Message {
	m := b.answer(to, MsgAccepted, said, MutantVoteEarly)
	if b.answers.left(b.s.out.Release) {
		b.answers = b.answers[:0]
	}
	b.answers = append(b.answers, answer{m, len(b.s.out.Release) - 1})
	return m
}

// left reports whether the answers were sent. out are the messages that wait for the disk.
func (a answers) left(out []*protocol.Message) bool {
	if len(a) == 0 {
		return true
	}
	first := a[0]
	return first.at < 0 || first.at >= len(out) || out[first.at] != first.m
}

// amend updates answers that have not been sent yet with what this member has accepted. It reports whether one of
// them is for the sender of a message.
func (b *broadcast) amend(m *protocol.Message, said Part) (amended bool) {
	if b.answers.left(b.s.out.Release) {
		return false
	}
	for _, a := range b.answers {
		was := a.m.Part.(*Part)
		if was.Ballot != said.Ballot {
			continue
		}
		was.Slot, was.Hint, was.Upto, a.m.Commit = said.Slot, said.Hint, b.upto, b.s.log.Last()
		if a.m.To == m.From {
			a.m.Context, amended = max(a.m.Context, m.Context), true
		}
	}
	if amended {
		b.s.out.Seq = b.s.disk.Touch()
	}
	return amended
}
