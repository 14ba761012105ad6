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
}

// Ask begins a group's read index, which has a part from each of these instances, or begins it again. They are active
// since a position: see ReadVector.Ask. It reports false if the group has ended.
func (s *ReadGroups) Ask(g *ReadGroup, since protocol.Position, shape []protocol.InstanceID) bool {
	if g.ended {
		return false
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(o *ReadGroup) bool { return o == g })
	g.vector.Mutant = s.Mutant
	g.vector.Ask(since, shape)
	if !g.placed {
		g.placed = true
		s.Under[kindOf(g.Barrier)]++
	}
	return true
}

// Point takes in an instance's part of a group's read index. complete says that it was the last part. ready says that
// the state serves the group; the group has ended then. The state has come to a position, at which these instances are
// active. If it is doubtful it serves no one.
func (s *ReadGroups) Point(g *ReadGroup, instance protocol.InstanceID, index protocol.Index, doubtful bool,
	at protocol.Position, shape []protocol.InstanceID, added []protocol.Index) (complete, ready bool) {
	if g.ended || !g.vector.Point(instance, index) {
		return false, false
	}
	s.leave(g)
	if !doubtful && !g.vector.Ahead(at) && s.served(g, added) && !g.vector.Void(shape) {
		g.ended = true
		return true, true
	}
	s.waiting = append(s.waiting, g)
	return true, false
}

// Void reports whether the group must be asked for again: at a position to which the state has come, other instances
// are active than those that were asked.
func (g *ReadGroup) Void(at protocol.Position, shape []protocol.InstanceID) bool {
	return !g.ended && !g.vector.Ahead(at) && g.vector.Void(shape)
}

// served reports whether the state serves a group. What was accepted is in the first instance's log up to its read
// index, perhaps behind slots of others that no one had executed. So a barrier waits until it has its place.
func (s *ReadGroups) served(g *ReadGroup, added []protocol.Index) bool {
	return g.vector.Reached(added) &&
		(!g.Barrier || s.Placed >= g.vector.points[0].index || s.Mutant == member.MutantBarrierAdded)
}

// Reached reports whether a group's read indexes are applied.
func (s *ReadGroups) Reached(shape []protocol.InstanceID, added []protocol.Index) bool {
	return slices.ContainsFunc(s.waiting,
		func(g *ReadGroup) bool { return !g.vector.Void(shape) && s.served(g, added) })
}

// Served takes out the groups that can be answered, which have ended then, and those that must be asked for again. The
// state has come to a position, at which these instances are active.
func (s *ReadGroups) Served(at protocol.Position, shape []protocol.InstanceID,
	added []protocol.Index) (ready, void []*ReadGroup) {
	keep := s.waiting[:0]
	for _, g := range s.waiting {
		switch {
		case g.vector.Ahead(at):
			keep = append(keep, g)
		case g.Void(at, shape):
			void = append(void, g)
		case s.served(g, added):
			g.ended = true
			ready = append(ready, g)
		default:
			keep = append(keep, g)
		}
	}
	clear(s.waiting[len(keep):])
	s.waiting = keep
	return ready, void
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
