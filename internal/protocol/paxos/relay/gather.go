package relay

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// A relay keeps the receivers of each message that it forwarded, and what each of them last reported to have
// accepted. It keeps no entries. A report replaces the member's earlier one, so an answer that arrives twice does no
// harm, nor does a list of answers.

// Held is what a member has on its disk: it accepted everything up to a slot under the ballot in question, or knows
// it to be decided.
type Held struct {
	ID   protocol.MemberID
	Upto protocol.Index
	// MissingBodies: bodies of decided entries are missing there.
	MissingBodies bool
}

// MaxMembers limits a relay's group, and the members in a message.
const MaxMembers = 256

// Gathering is what a relay gathers for one proposer; zero if it gathers for none.
type Gathering struct {
	Proposer protocol.MemberID
	Ballot   paxos.Ballot
	// forwarded are the messages that were forwarded and not answered by all, oldest first, at most
	// [paxos.MaxDepth].
	forwarded []Forwarded
	// latest is the last slot of the latest forwarded message, and written the write with which this member has
	// answered it.
	latest  protocol.Index
	written uint64
	// from are the receivers, with this member, in the order in which they were first sent anything.
	from []*groupMember
}

// Forwarded is a message that was forwarded.
type Forwarded struct {
	Last    protocol.Index // its last slot
	Due     time.Duration  // when the report does not wait for the others any longer
	Written uint64         // when this write is durable, this member has answered too
	Members []protocol.MemberID
}

// groupMember is a relay's view of a member of its group.
type groupMember struct {
	Held
	// answered is the last slot of what it has acknowledged.
	answered protocol.Index
	// unreported: the proposer does not know of it yet.
	unreported bool
	// probe is the last slot of a message that it was sent at an instant and has not acknowledged; 0: none. It
	// measures the member's delay. slow: it did not answer in time, and is not waited for.
	probe protocol.Index
	at    time.Duration
	slow  bool
}

// Begin starts gathering for a proposer, unless that is in progress.
func (g *Gathering) Begin(to protocol.MemberID, ballot paxos.Ballot) {
	if g.Proposer != to || g.Ballot != ballot || len(g.from) > MaxMembers {
		*g = Gathering{Proposer: to, Ballot: ballot}
	}
}

func (g *Gathering) member(id protocol.MemberID) *groupMember {
	at := slices.IndexFunc(g.from, func(a *groupMember) bool { return a.ID == id })
	if at < 0 {
		return nil
	}
	return g.from[at]
}

// RecordForward records a forwarded message.
func (g *Gathering) RecordForward(p Forwarded, now time.Duration) {
	for _, id := range p.Members {
		a := g.member(id)
		if a == nil {
			a = &groupMember{Held: Held{ID: id}}
			g.from = append(g.from, a)
		}
		if a.probe == 0 {
			a.probe, a.at = p.Last, now
		}
	}
	if len(g.forwarded) == paxos.MaxDepth {
		g.markSlow(&g.forwarded[0])
		g.forwarded = slices.Delete(g.forwarded, 0, 1)
	}
	g.forwarded = append(g.forwarded, p)
	g.latest, g.written = max(g.latest, p.Last), max(g.written, p.Written)
}

// RecordAnswer records a member's answer to the message that ends with a slot. It reports whether the member was a
// receiver.
func (g *Gathering) RecordAnswer(h Held, last protocol.Index, now, patience time.Duration) bool {
	a := g.member(h.ID)
	if a == nil {
		return false
	}
	a.answered = max(a.answered, last)
	if a.probe > 0 && last >= a.probe {
		a.probe, a.slow = 0, now >= a.at+patience
	}
	if h.Upto > a.Upto {
		a.Held, a.unreported = h, true
	}
	return true
}

// markSlow marks receivers that did not answer in time: the next message does not wait for them.
func (g *Gathering) markSlow(p *Forwarded) {
	for _, id := range p.Members {
		if a := g.member(id); a.answered < p.Last {
			a.slow = true
		}
	}
}

// answered reports whether all that are waited for have answered.
func (g *Gathering) answered(p *Forwarded) bool {
	return !slices.ContainsFunc(p.Members, func(id protocol.MemberID) bool {
		a := g.member(id)
		return a.answered < p.Last && !a.slow
	})
}

// Due reports whether to report to the proposer: all have answered the oldest message, or had the time for it, or
// an answer arrived so late that no other one is waited for.
func (g *Gathering) Due(now time.Duration) bool {
	n := 0
	for n < len(g.forwarded) && (now >= g.forwarded[n].Due || g.answered(&g.forwarded[n])) {
		g.markSlow(&g.forwarded[n])
		n++
	}
	g.forwarded = slices.Delete(g.forwarded, 0, n)
	return (n > 0 || len(g.forwarded) == 0) &&
		slices.ContainsFunc(g.from, func(a *groupMember) bool { return a.unreported })
}

// Report returns what the proposer does not know yet. With all, a mutant, every member is reported to have what
// this one has.
func (g *Gathering) Report(self protocol.MemberID, all bool) (out []Held) {
	for _, a := range g.from {
		if own := g.member(self); all && own != nil && own.Upto > a.Upto {
			a.Upto, a.unreported = own.Upto, true
		}
		if a.unreported {
			out, a.unreported = append(out, a.Held), false
		}
	}
	return out
}

// AnsweredUpTo is the last slot that this member itself has acknowledged once some writes are durable.
func (g *Gathering) AnsweredUpTo(done uint64) (last protocol.Index) {
	if g.written <= done {
		return g.latest
	}
	for i := range g.forwarded {
		if p := &g.forwarded[i]; p.Written <= done {
			last = max(last, p.Last)
		}
	}
	return last
}

// Awaits reports whether a member has not acknowledged everything that was forwarded.
func (g *Gathering) Awaits(id protocol.MemberID) bool {
	a := g.member(id)
	return a != nil && a.answered < g.latest
}

// Check verifies the invariants.
func (g *Gathering) Check(self protocol.MemberID) error {
	if len(g.forwarded) > paxos.MaxDepth || len(g.from) > 2*MaxMembers || g.Proposer == self && g.Proposer != 0 {
		return fmt.Errorf("relay of %s: %d messages are passed on, to %d members", g.Proposer, len(g.forwarded), len(g.from))
	}
	for i := range g.forwarded {
		for _, id := range g.forwarded[i].Members {
			if g.member(id) == nil {
				return fmt.Errorf("relay of %s: %s is not known", g.Proposer, id)
			}
		}
	}
	return nil
}

func (h Held) String() string { return fmt.Sprintf("%s:%d", h.ID, h.Upto) }

// Number is the encoding of what a member has. HeldOf is its inverse.
func (h Held) Number() uint64 {
	if h.MissingBodies {
		return uint64(h.Upto)<<1 | 1
	}
	return uint64(h.Upto) << 1
}

func HeldOf(id, number uint64) Held {
	return Held{protocol.MemberID(id), protocol.Index(number >> 1), number&1 == 1}
}

// AppendMembers appends the lists of messages to and from relays.
func AppendMembers(dst []byte, members []protocol.MemberID, all []Held) []byte {
	for _, id := range members {
		dst = slots.AppendNumbers(dst, uint64(id))
	}
	for _, h := range all {
		dst = slots.AppendNumbers(dst, uint64(h.ID), h.Number())
	}
	return dst
}

func DecodeMembers(b []byte) (ids []protocol.MemberID) {
	for i := range len(b) / 8 {
		ids = append(ids, protocol.MemberID(slots.Number(b, i)))
	}
	return ids
}

func DecodeHeld(b []byte) (all []Held) {
	for i := 0; i+1 < len(b)/8; i += 2 {
		all = append(all, HeldOf(slots.Number(b, i), slots.Number(b, i+1)))
	}
	return all
}
