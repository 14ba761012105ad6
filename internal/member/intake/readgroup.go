package intake

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/protocol"
)

// ReadGroup is reads that are answered together. Every instance's leadership is confirmed once.
// That serves all reads that came before the confirmation was asked for.
type ReadGroup struct {
	// Done is called once, by whoever found out that the group has ended. It gets nil, or why
	// there is no answer.
	Done func(error)
	// Barrier: the readers want to see all that was accepted before (protocol.Read.Barrier).
	Barrier bool
	// Whole: all instances are asked, because a reader wants to know that each is led, or because one was not enough.
	Whole bool
	// Passed is when the group passed its stages.
	Passed ReadPassed

	// These belong to ReadGroups.
	vector ReadVector
	ended  bool // Done was called, or is about to be: nothing that comes now counts
	placed bool // it counts in ReadGroups.Under
}

// ReadPassed are times by the driver's clock, which the driver notes and no rule reads: when the group had its first
// reader, when instances were asked, when all had answered, and when the state served the group. 0: not yet.
type ReadPassed struct{ Begun, Asked, Confirmed, Served time.Duration }

// ReadGroups knows which groups of reads wait for read indexes and for the state. The instances may change while a
// group waits. Then the group is asked for again, perhaps twice, while answers to the earlier question are still to
// come. In whatever order these come, a group ends once. Not safe for concurrent use.
type ReadGroups struct {
	// waiting are groups that have all their read indexes. None has ended, and each is listed once.
	waiting []*ReadGroup
	Mutant  mutant.Name // of the vectors
	// Placed is how far the first instance's entries have their place in the global log, see order.Order.
	Placed protocol.Index
	// Under is how many groups still wait for read indexes: plain ones, and barriers.
	Under [2]int
	// whole is for how many groups more all instances are asked.
	whole int
}

// wholeGroups is for how many groups all instances are asked after one for which one instance was not enough.
const wholeGroups = 64

// Ask begins a group's read index, or begins it again. These instances are active since a position: see
// ReadVector.Ask. One of them is asked alone, if that may be enough; 0: none may. It reports false if the group has
// ended.
func (s *ReadGroups) Ask(g *ReadGroup, since protocol.Position, shape []protocol.InstanceID,
	one protocol.InstanceID) bool {
	if g.ended {
		return false
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(o *ReadGroup) bool { return o == g })
	g.vector.Mutant = s.Mutant
	if one != 0 && s.asksOne(g, shape) {
		g.vector.AskOne(since, one)
	} else {
		g.vector.Ask(since, shape)
	}
	if !g.placed {
		g.placed = true
		s.Under[kindOf(g.Barrier)]++
	}
	return true
}

// One is the only instance that is to be asked for the group; 0: all are.
func (g *ReadGroup) One() protocol.InstanceID {
	if g.vector.one {
		return g.vector.points[0].instance
	}
	return 0
}

// asksOne reports whether one instance may be enough for a group. A barrier needs what the first one accepted.
func (s *ReadGroups) asksOne(g *ReadGroup, shape []protocol.InstanceID) bool {
	if g.Barrier || g.Whole || len(shape) == 1 || s.Mutant == member.MutantReadOne {
		return false
	}
	s.whole = max(s.whole-1, 0)
	return s.whole == 0
}

// Point takes in an instance's part of a group's read index. complete says that it was the last part. ready says that
// the state serves the group; the group has ended then. If the state is doubtful it serves no one.
func (s *ReadGroups) Point(g *ReadGroup, instance protocol.InstanceID, index protocol.Index, doubtful bool,
	state *ReadState) (complete, ready bool) {
	if g.ended || !g.vector.Point(instance, index) {
		return false, false
	}
	s.leave(g)
	if !doubtful && !g.vector.Ahead(state.At.Position) && !g.vector.Void(state.Shape) && s.served(g, state) {
		g.ended = true
		return true, true
	}
	s.waiting = append(s.waiting, g)
	return true, false
}

// Again reports whether instances must be asked for the group again: at a position to which the state has come, others
// are active than those that were asked, or one was asked and is not enough.
func (g *ReadGroup) Again(s *ReadState) bool {
	return !g.ended && !g.vector.Ahead(s.At.Position) && (g.vector.Void(s.Shape) || g.vector.Stalls(s))
}

// served reports whether the state serves a group. What was accepted is in the first instance's log up to its read
// index, perhaps behind slots of others that no one had executed. So a barrier waits until it has its place.
func (s *ReadGroups) served(g *ReadGroup, state *ReadState) bool {
	return g.vector.Reached(state) &&
		(!g.Barrier || s.Placed >= g.vector.points[0].index || s.Mutant == member.MutantBarrierAdded)
}

// Reached reports whether a group's read indexes are applied.
func (s *ReadGroups) Reached(state *ReadState) bool {
	return slices.ContainsFunc(s.waiting,
		func(g *ReadGroup) bool { return !g.vector.Void(state.Shape) && s.served(g, state) })
}

// Served takes out the groups that can be answered, which have ended then, and those for which instances must be asked
// again.
func (s *ReadGroups) Served(state *ReadState) (ready, again []*ReadGroup) {
	keep := s.waiting[:0]
	for _, g := range s.waiting {
		switch {
		case g.vector.Ahead(state.At.Position):
			keep = append(keep, g)
		case g.vector.Void(state.Shape):
			again = append(again, g)
		case s.served(g, state):
			g.ended = true
			ready = append(ready, g)
		case g.vector.Stalls(state):
			g.Whole, s.whole = true, wholeGroups
			again = append(again, g)
		default:
			keep = append(keep, g)
		}
	}
	clear(s.waiting[len(keep):])
	s.waiting = keep
	return ready, again
}

// Fail ends a group without an answer. It reports false if it had ended.
func (s *ReadGroups) Fail(g *ReadGroup) bool {
	if g.ended {
		return false
	}
	g.ended = true
	s.leave(g)
	s.waiting = slices.DeleteFunc(s.waiting, func(o *ReadGroup) bool { return o == g })
	return true
}

// Drop ends a group for which no one waits, if it has all its read indexes. Its Done is not called.
func (s *ReadGroups) Drop(g *ReadGroup) {
	if i := slices.Index(s.waiting, g); i >= 0 {
		g.ended = true
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
}

func (s *ReadGroups) leave(g *ReadGroup) {
	if g.placed {
		g.placed = false
		s.Under[kindOf(g.Barrier)]--
	}
}
