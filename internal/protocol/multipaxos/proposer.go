package multipaxos

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// phase is how far a proposer is.
type phase uint8

const (
	idle      phase = iota // does not propose
	preparing              // asks for promises
	ready                  // a quorum has promised: it proposes
)

// proposer is one member's attempt to have the slots of a segment decided under its ballot. Phase 1 is
// about all slots that are not decided, at once.
type proposer struct {
	seg    segment
	phase  phase
	ballot Ballot
	// asked are those that are asked for a promise.
	asked []*asked
	// found are the votes that promises told of, in slots for which nothing is proposed yet: of each slot
	// the one with the highest ballot. floor: in slots after it nothing can be decided under a lower ballot.
	found map[protocol.Index]vote
	floor protocol.Index
	// end: in all slots up to here something is decided or proposed under the ballot.
	end protocol.Index
}

// asked is an acceptor that is asked for a promise. It answers in parts.
type asked struct {
	id protocol.MemberID
	// next is the first slot that it has not told of; done: it has told of all.
	next protocol.Index
	done bool
	// decided is how many slots it knows to be decided; lacking: it misses bodies of these.
	decided protocol.Index
	lacking bool
	// again is when to ask once more, and pause how long after the last time that is.
	again, pause time.Duration
}

// begin starts phase 1 for all slots after decided.
func (p *proposer) begin(b Ballot, decided protocol.Index) {
	p.phase, p.ballot, p.asked, p.end = preparing, b, nil, decided
	if p.found == nil {
		p.found = map[protocol.Index]vote{}
	}
}

// ask adds an acceptor to those that are asked, and returns it.
func (p *proposer) ask(id protocol.MemberID, decided protocol.Index) *asked {
	i := slices.IndexFunc(p.asked, func(a *asked) bool { return a.id == id })
	if i < 0 {
		i = len(p.asked)
		p.asked = append(p.asked, &asked{id: id, next: p.seg.after(decided)})
	}
	a := p.asked[i]
	a.next = max(a.next, p.seg.after(decided)) // others told of what is decided meanwhile
	return a
}

// note takes in what an acceptor has accepted. anyway: whatever was found before ([MutantAnyFound]).
func (p *proposer) note(v vote, anyway bool) {
	i := v.entry.Index
	if old, ok := p.found[i]; i > p.end && (!ok || anyway || old.ballot < v.ballot) {
		p.found[i] = v
	}
	p.floor = max(p.floor, i)
}

// promised reports whether a quorum for phase 1 has told of all that it has accepted. self is this member
// if its own promise is durable, else 0.
func (p *proposer) promised(set quorum.Set, self protocol.MemberID) bool {
	return p.phase == preparing && set.Vote(func(id protocol.MemberID) quorum.Answer {
		if id == self || slices.ContainsFunc(p.asked, func(a *asked) bool { return a.id == id && a.done }) {
			return quorum.Granted
		}
		return quorum.Missing
	}) == quorum.Won
}

// settle ends phase 1.
func (p *proposer) settle() { p.phase, p.asked = ready, nil }

// next is the slot for which something is to be proposed next. bound: what that is is not this
// proposer's choice, because the slot may be decided already. Then it is v, or a no-op if nobody told of
// a vote.
func (p *proposer) next() (slot protocol.Index, v vote, bound, found bool) {
	slot = p.seg.after(p.end)
	v, found = p.found[slot]
	return slot, v, slot <= p.floor, found
}

// proposed notes that something was proposed in the next slot.
func (p *proposer) proposed() {
	p.end = p.seg.after(p.end)
	delete(p.found, p.end)
}

// forget drops what is known of decided slots.
func (p *proposer) forget(decided protocol.Index) {
	for p.end < decided {
		p.proposed()
	}
	p.end = max(p.end, decided)
}

// check verifies the invariants.
func (p *proposer) check(decided protocol.Index) error {
	switch {
	case p.phase == idle && (len(p.found) > 0 || len(p.asked) > 0):
		return fmt.Errorf("does not propose, but found %d votes", len(p.found))
	case p.phase != preparing && len(p.asked) > 0:
		return fmt.Errorf("asks %d acceptors in phase %d", len(p.asked), p.phase)
	case p.phase != idle && p.end < decided:
		return fmt.Errorf("proposed up to %d; decided are %d", p.end, decided)
	}
	if i, v, ok := firstWrong(p.found, func(i protocol.Index, v *vote) bool {
		return i <= p.end || i > p.floor || v.entry.Index != i || v.ballot > p.ballot
	}); ok {
		return fmt.Errorf("slot %d: found entry %d of ballot %s; proposed up to %d, floor %d", i, v.entry.Index, v.ballot, p.end, p.floor)
	}
	return nil
}
