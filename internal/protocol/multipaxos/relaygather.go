package multipaxos

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// What a relay keeps of what it passed on: who was sent it, and what each of them accepted, as it said last. Of the
// entries it keeps nothing. What a member says replaces what it said before, so an answer that comes twice does no
// harm, nor does a list of answers.

// held is what a member holds, on its disk: it accepted all up to a slot under the ballot that is asked about, or knows
// it to be decided.
type held struct {
	id   protocol.MemberID
	upto protocol.Index
	// lacking: bodies of decided entries are missing there.
	lacking bool
}

// mostHeld bounds a relay's group, and the members that a message names.
const mostHeld = 256

// gathering is what a relay gathers for one proposer; zero if it does not.
type gathering struct {
	to     protocol.MemberID
	ballot Ballot
	// passed is what was passed on and not answered by all, oldest first. There are at most maxDepth.
	passed []passed
	// latest is the last slot of what was passed on last, and written the write with which this member has answered that.
	latest  protocol.Index
	written uint64
	// from are those that were asked, this member too, in the order in which they were first asked.
	from []*asker
}

// passed is a message that was passed on.
type passed struct {
	last    protocol.Index // its last slot
	due     time.Duration  // when the others are not waited for any longer
	written uint64         // when this write is durable, this member has answered too
	members []protocol.MemberID
}

// asker is what a relay knows of a member of its group.
type asker struct {
	held
	// answered is the last slot of what it has answered.
	answered protocol.Index
	// news: the proposer was not told of it.
	news bool
	// probe is the last slot of something that it was sent at an instant and has not answered; 0: nothing. It says how long
	// the member takes. slow: it did not answer in time, and is not waited for.
	probe protocol.Index
	at    time.Duration
	slow  bool
}

// begin begins to gather for a proposer, unless that is under way.
func (g *gathering) begin(to protocol.MemberID, ballot Ballot) {
	if g.to != to || g.ballot != ballot || len(g.from) > mostHeld {
		*g = gathering{to: to, ballot: ballot}
	}
}

func (g *gathering) member(id protocol.MemberID) *asker {
	at := slices.IndexFunc(g.from, func(a *asker) bool { return a.id == id })
	if at < 0 {
		return nil
	}
	return g.from[at]
}

// pass notes what was passed on.
func (g *gathering) pass(p passed, now time.Duration) {
	for _, id := range p.members {
		a := g.member(id)
		if a == nil {
			a = &asker{held: held{id: id}}
			g.from = append(g.from, a)
		}
		if a.probe == 0 {
			a.probe, a.at = p.last, now
		}
	}
	if len(g.passed) == maxDepth {
		g.giveUp(&g.passed[0])
		g.passed = slices.Delete(g.passed, 0, 1)
	}
	g.passed = append(g.passed, p)
	g.latest, g.written = max(g.latest, p.last), max(g.written, p.written)
}

// took takes in what a member answered to what ends with a slot. It reports whether the member was asked.
func (g *gathering) took(h held, last protocol.Index, now, patience time.Duration) bool {
	a := g.member(h.id)
	if a == nil {
		return false
	}
	a.answered = max(a.answered, last)
	if a.probe > 0 && last >= a.probe {
		a.probe, a.slow = 0, now >= a.at+patience
	}
	if h.upto > a.upto {
		a.held, a.news = h, true
	}
	return true
}

// giveUp: who did not answer in time is not waited for the next time.
func (g *gathering) giveUp(p *passed) {
	for _, id := range p.members {
		if a := g.member(id); a.answered < p.last {
			a.slow = true
		}
	}
}

// answered reports whether all that are waited for have answered.
func (g *gathering) answered(p *passed) bool {
	return !slices.ContainsFunc(p.members, func(id protocol.MemberID) bool {
		a := g.member(id)
		return a.answered < p.last && !a.slow
	})
}

// due reports whether to tell the proposer: all have answered what was passed on first, or had the time for it, or
// somebody answered so late that nobody is waited for any more.
func (g *gathering) due(now time.Duration) bool {
	n := 0
	for n < len(g.passed) && (now >= g.passed[n].due || g.answered(&g.passed[n])) {
		g.giveUp(&g.passed[n])
		n++
	}
	g.passed = slices.Delete(g.passed, 0, n)
	return (n > 0 || len(g.passed) == 0) && slices.ContainsFunc(g.from, func(a *asker) bool { return a.news })
}

// tell is what the proposer has not been told. A mutant says of all what this member says of itself.
func (g *gathering) tell(self protocol.MemberID, all bool) (out []held) {
	for _, a := range g.from {
		if own := g.member(self); all && own != nil && own.upto > a.upto {
			a.upto, a.news = own.upto, true
		}
		if a.news {
			out, a.news = append(out, a.held), false
		}
	}
	return out
}

// own is the last slot of what this member itself has answered when some writes are durable.
func (g *gathering) own(done uint64) (last protocol.Index) {
	if g.written <= done {
		return g.latest
	}
	for i := range g.passed {
		if p := &g.passed[i]; p.written <= done {
			last = max(last, p.last)
		}
	}
	return last
}

// owes reports whether a member has not answered all that was passed on.
func (g *gathering) owes(id protocol.MemberID) bool {
	a := g.member(id)
	return a != nil && a.answered < g.latest
}

// check verifies the invariants.
func (g *gathering) check(self protocol.MemberID) error {
	if len(g.passed) > maxDepth || len(g.from) > 2*mostHeld || g.to == self && g.to != 0 {
		return fmt.Errorf("relay of %s: %d messages are passed on, to %d members", g.to, len(g.passed), len(g.from))
	}
	for i := range g.passed {
		for _, id := range g.passed[i].members {
			if g.member(id) == nil {
				return fmt.Errorf("relay of %s: %s is not known", g.to, id)
			}
		}
	}
	return nil
}

func (h held) String() string { return fmt.Sprintf("%s:%d", h.id, h.upto) }

// number is what is encoded of a member's part but for its id. heldOf is its inverse.
func (h held) number() uint64 {
	if h.lacking {
		return uint64(h.upto)<<1 | 1
	}
	return uint64(h.upto) << 1
}

func heldOf(id, number uint64) held {
	return held{protocol.MemberID(id), protocol.Index(number >> 1), number&1 == 1}
}

// appendRelay adds to a part what only relays say.
func appendRelay(dst []byte, members []protocol.MemberID, all []held) []byte {
	for _, id := range members {
		dst = slots.AppendNumbers(dst, uint64(id))
	}
	for _, h := range all {
		dst = slots.AppendNumbers(dst, uint64(h.id), h.number())
	}
	return dst
}

func decodeMembers(b []byte) (ids []protocol.MemberID) {
	for i := range len(b) / 8 {
		ids = append(ids, protocol.MemberID(slots.Number(b, i)))
	}
	return ids
}

func decodeHeld(b []byte) (all []held) {
	for i := 0; i+1 < len(b)/8; i += 2 {
		all = append(all, heldOf(slots.Number(b, i), slots.Number(b, i+1)))
	}
	return all
}
