package intake

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// ReadVector is the read index of the global log: one of each instance (docs/internals/niagara.md, 3.3, the vector
// rule). Take a member that has added all of it to the order, and applied what followed from that. Its state includes
// everything that was applied anywhere before the points were asked for.
//
// The read index of one instance is enough where the instances are merged (3.3, the rule of one instance): no member
// had applied anything behind the slot that comes next in this instance. So a state serves the read that has come to
// that slot. It may never come there, if other instances have nothing for the rounds before it. Not safe for
// concurrent use.
type ReadVector struct {
	points  []readPoint       // ascending by instance; one if only that instance is asked
	missing int               // how many of them are not known yet
	since   protocol.Position // see Ask
	few     [4]readPoint
	// one: only one instance is asked, by the rule of one instance. bound is the slot to which the order must come
	// then; zero until it has consumed the instance's log up to the read index.
	one    bool
	bound  order.Slot
	Mutant mutant.Name // read-before-applied, weave-read-one, weave-read-short
}

type readPoint struct {
	instance protocol.InstanceID
	index    protocol.Index
	known    bool
}

// Ask begins with these instances, ascending. They are active since a position, that at which they took the place of
// others; 0: since before this incarnation. Rounds would not do: they begin again in the log behind a seal.
func (v *ReadVector) Ask(since protocol.Position, shape []protocol.InstanceID) {
	if v.Mutant == member.MutantReadOne {
		shape = shape[:1]
	}
	v.points, v.missing, v.since, v.one = v.few[:0], len(shape), since, false
	for _, id := range shape {
		v.points = append(v.points, readPoint{instance: id})
	}
}

// AskOne is Ask for one of these instances, by the rule of one instance.
func (v *ReadVector) AskOne(since protocol.Position, instance protocol.InstanceID) {
	v.points, v.missing, v.since = append(v.few[:0], readPoint{instance: instance}), 1, since
	v.one, v.bound = true, order.Slot{}
}

// Point takes in an instance's read index. It reports whether this was the last one missing.
func (v *ReadVector) Point(instance protocol.InstanceID, index protocol.Index) (complete bool) {
	for i := range v.points {
		if p := &v.points[i]; p.instance == instance && !p.known {
			p.index, p.known = index, true
			v.missing--
			return v.missing == 0
		}
	}
	return false
}

// Ahead reports whether the instances that were asked are active only since a later position than that to which the
// state has come. All that comes before them in the log is part of the read then.
func (v *ReadVector) Ahead(at protocol.Position) bool { return v.since > at }

// Void reports whether the active instances are others than those that were asked, although these are not ahead. The
// global log may then have gone on through some that gave no read index, so all must be asked again. The only one that
// was asked may stay active while others change: no slot behind its next one is executed without it.
func (v *ReadVector) Void(shape []protocol.InstanceID) bool {
	if v.one {
		return !slices.Contains(shape, v.points[0].instance)
	}
	if v.Mutant == member.MutantReadOne {
		shape = shape[:1]
	}
	if len(shape) != len(v.points) {
		return true
	}
	for i := range shape {
		if v.points[i].instance != shape[i] {
			return true
		}
	}
	return false
}

// Reached reports whether a state serves the read, whose instances are active.
func (v *ReadVector) Reached(s *ReadState) bool {
	if v.missing == 0 && v.Mutant == member.MutantReadBeforeApplied {
		return true
	}
	if v.missing > 0 {
		return false
	}
	if v.one {
		return v.passed(s)
	}
	added := s.Added
	if v.Mutant == member.MutantReadOne {
		added = added[:1]
	}
	if len(added) != len(v.points) {
		return false
	}
	for i := range added {
		if added[i] < v.points[i].index {
			return false
		}
	}
	return true
}

// passed reports whether the order has come to the next slot of the only instance that was asked, behind its read
// index.
func (v *ReadVector) passed(s *ReadState) bool {
	p := v.points[0]
	at := s.At.Point(p.instance)
	if at.Index < p.index {
		return false
	}
	if v.bound.Round == 0 {
		v.bound = order.Slot{Round: at.Round + 1, Instance: p.instance}
	}
	return s.At.Next.Compare(v.bound) >= 0 || v.Mutant == member.MutantReadShort
}

// Stalls reports whether the order has all that the only instance that was asked had, and waits for others.
func (v *ReadVector) Stalls(s *ReadState) bool {
	return v.one && v.missing == 0 && s.added(v.points[0].instance) >= v.points[0].index && !v.passed(s)
}

// Check verifies the invariants.
func (v *ReadVector) Check() error {
	missing := 0
	for i := range v.points {
		if !v.points[i].known {
			missing++
		}
	}
	if missing != v.missing {
		return fmt.Errorf("read vector: %d points missing, says %d", missing, v.missing)
	}
	return nil
}
