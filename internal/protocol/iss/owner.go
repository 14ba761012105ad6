package iss

import (
	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/protocol"
)

// What a segment's leader does under ballot 0, for which it needs no promises.

// zero reports whether this member proposes under ballot 0.
func (b *broadcast) zero() bool {
	return b.leader == b.s.cfg.Self && b.prop.Phase == paxos.Ready && b.prop.Ballot == 0
}

// start begins ballot 0, once. A leader that finds that an earlier incarnation began it abstains, and has what that
// one left decided under a ballot of its own (S2, S6). A leader that has promised another ballot has declared that
// it proposes nothing (S5).
func (b *broadcast) start() {
	if b.zeroState != fresh || b.acc.Promised > 0 || b.s.stalled() {
		if b.zeroState == retired && b.s.cfg.Mutant == MutantZeroReused && b.acc.Promised == 0 {
			b.begin()
		}
		return
	}
	b.acc.Started = true
	b.writePromise()
	b.startedAt = b.s.disk.Written
	b.begin()
}

func (b *broadcast) begin() {
	b.zeroState = active
	b.prop.Begin(0, b.upto)
	b.prop.BecomeReady()
	b.prop.End = max(b.prop.End, b.acc.Reach) // what an earlier incarnation proposed, with a mutant
	b.track()
	b.proposer = b.s.cfg.Self
}

// begun reports whether it is durable that ballot 0 has begun. Nothing of it is sent before that (S2). Nothing is
// skipped: this member would learn ⊥ itself, restart, begin again and propose something there. And nothing is
// proposed: an incarnation that begins again would give another body the same name.
func (b *broadcast) begun() bool {
	return b.s.disk.Done >= b.startedAt || b.s.cfg.Mutant == MutantStartedEarly
}

// hasFreeSlot reports whether there is a free slot.
func (b *broadcast) hasFreeSlot() bool {
	for next := b.seg.After(b.prop.End); b.zero() && b.begun() && next <= b.seg.Last; next = b.seg.After(next) {
		if !b.isDecided(next) {
			return true
		}
		b.prop.MarkProposed() // another member had it decided
	}
	return false
}

// propose proposes an entry in the next free slot.
func (b *broadcast) propose(e protocol.Entry) {
	i := b.seg.After(b.prop.End)
	e = b.seal(e, i)
	b.vote(e)
	b.ownValues[i] = e
	b.open += e.Bytes()
	b.addValue(e)
}

// skipTo fills the free slots before one: it skips them, except for the last one of the segment. Its value shows
// whether the leader is suspected (S9), so it gets an empty value. It may come long before the last slots of
// leaders that have more of them. With NoSkip all of them get an empty value: then nothing is ⊥ without votes, as
// in the thesis before its optimisation.
func (b *broadcast) skipTo(to protocol.Index) {
	for b.hasFreeSlot() {
		i := b.seg.After(b.prop.End)
		if i >= to || i == b.seg.Last && to != paxos.Beyond && b.s.cfg.Mutant == MutantLastWaits {
			return
		}
		if b.s.opt.noSkip || i == b.seg.Last && b.s.cfg.Mutant != MutantSkipLast {
			b.propose(protocol.NewEmpty(b.s.cfg.Self))
			continue
		}
		b.prop.MarkProposed()
		b.decide(b.bottom(i))
	}
}
