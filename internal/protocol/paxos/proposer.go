package paxos

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// Phase is how far a proposer is.
type Phase uint8

const (
	Idle      Phase = iota // does not propose
	Preparing              // asks for promises
	Ready                  // a quorum has promised: it proposes
)

// Proposer is one member's attempt to have the slots of a segment decided under its ballot. Phase 1 covers all
// undecided slots at once.
type Proposer struct {
	Seg    Segment
	Phase  Phase
	Ballot Ballot
	// Requests are the acceptors that are asked for a promise.
	Requests []*Request
	// found has the reported vote with the highest ballot for each slot in which nothing is proposed yet. Floor: in
	// slots after it nothing can be decided under a lower ballot.
	found map[protocol.Index]Vote
	Floor protocol.Index
	// End: a value is decided or proposed under the ballot in every slot up to this one.
	End protocol.Index
}

// Request is a request to one acceptor for a promise, which is answered in parts.
type Request struct {
	ID protocol.MemberID
	// Next is the first slot that it has not reported; Done: it has reported everything. Asked is the slot from which
	// on it was asked last; ≤ Next.
	Next, Asked protocol.Index
	Done        bool
	// Decided is the last slot up to which it knows everything to be decided; MissingBodies: it is missing bodies of
	// these entries.
	Decided       protocol.Index
	MissingBodies bool
	// RetryAt is when to ask again, and RetryAfter the pause before that.
	RetryAt, RetryAfter time.Duration
}

// Report takes in an answer to a question from a slot on. It reports everything up to last; more: there is more after
// that. It returns false if the answer is to an earlier question, or repeats one after which more was asked for: where
// links repeat messages, there would be more and more questions.
func (r *Request) Report(from, last protocol.Index, more bool) bool {
	if from > r.Next || last+1 < r.Next || more && last+1 <= r.Asked {
		return false
	}
	r.Next, r.Done, r.RetryAfter = last+1, !more, 0
	return true
}

// Begin starts phase 1 for all slots after decided.
func (p *Proposer) Begin(b Ballot, decided protocol.Index) {
	p.Phase, p.Ballot, p.Requests, p.End = Preparing, b, nil, decided
	if p.found == nil {
		p.found = map[protocol.Index]Vote{}
	}
}

// Request adds an acceptor to those that are asked, and returns its request.
func (p *Proposer) Request(id protocol.MemberID, decided protocol.Index) *Request {
	i := slices.IndexFunc(p.Requests, func(a *Request) bool { return a.ID == id })
	if i < 0 {
		i = len(p.Requests)
		p.Requests = append(p.Requests, &Request{ID: id, Next: p.Seg.After(decided)})
	}
	a := p.Requests[i]
	a.Next = max(a.Next, p.Seg.After(decided)) // decided meanwhile
	return a
}

// AddVote adds a vote that an acceptor has reported. anyway: it replaces any other (a mutant of multi-Paxos).
func (p *Proposer) AddVote(v Vote, anyway bool) {
	i := v.Entry.Index
	if old, ok := p.found[i]; i > p.End && (!ok || anyway || old.Ballot < v.Ballot) {
		p.found[i] = v
	}
	p.Floor = max(p.Floor, i)
}

// Promised reports whether a quorum for phase 1 has reported everything that it has accepted. self is this member
// if its own promise is durable, else 0.
func (p *Proposer) Promised(set quorum.Set, self protocol.MemberID) bool {
	return p.Phase == Preparing && set.Vote(func(id protocol.MemberID) quorum.Answer {
		if id == self || slices.ContainsFunc(p.Requests, func(a *Request) bool { return a.ID == id && a.Done }) {
			return quorum.Granted
		}
		return quorum.Missing
	}) == quorum.Won
}

// BecomeReady ends phase 1.
func (p *Proposer) BecomeReady() { p.Phase, p.Requests = Ready, nil }

// NextSlot is the next slot to propose in. bound: the slot may be decided already, so the proposer may not choose the
// value: it is v, or a no-op if no acceptor reported a vote.
func (p *Proposer) NextSlot() (slot protocol.Index, v Vote, bound, found bool) {
	slot = p.Seg.After(p.End)
	v, found = p.found[slot]
	return slot, v, slot <= p.Floor, found
}

// MarkProposed records that a value was proposed in the next slot.
func (p *Proposer) MarkProposed() {
	p.End = p.Seg.After(p.End)
	delete(p.found, p.End)
}

// Forget drops decided slots.
func (p *Proposer) Forget(decided protocol.Index) {
	for p.End < decided {
		p.MarkProposed()
	}
	p.End = max(p.End, decided)
}

// Check verifies the invariants.
func (p *Proposer) Check(decided protocol.Index) error {
	switch {
	case p.Phase == Idle && (len(p.found) > 0 || len(p.Requests) > 0):
		return fmt.Errorf("does not propose, but found %d votes", len(p.found))
	case p.Phase != Preparing && len(p.Requests) > 0:
		return fmt.Errorf("asks %d acceptors in phase %d", len(p.Requests), p.Phase)
	case p.Phase != Idle && p.End < decided:
		return fmt.Errorf("proposed up to %d; decided are %d", p.End, decided)
	}
	if i, v, ok := firstWrong(p.found, func(i protocol.Index, v *Vote) bool {
		return i <= p.End || i > p.Floor || v.Entry.Index != i || v.Ballot > p.Ballot
	}); ok {
		return fmt.Errorf("slot %d: found entry %d of ballot %s; proposed up to %d, floor %d", i, v.Entry.Index, v.Ballot,
			p.End, p.Floor)
	}
	return nil
}
