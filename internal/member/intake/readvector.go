package intake

import (
	"fmt"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/protocol"
)

// ReadVector is the read index of the global log: one of each instance (docs/internals/niagara.md, 3.3, the vector
// rule). Take a member that has added all of it to the order, and applied what followed from that. Its state includes
// everything that was applied anywhere before the points were asked for. Not safe for concurrent use.
type ReadVector struct {
	points  []readPoint       // ascending by instance
	missing int               // how many of them are not known yet
	since   protocol.Position // see Ask
	few     [4]readPoint
	Mutant  mutant.Name // read-before-applied, weave-read-one
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
	v.points, v.missing, v.since = v.few[:0], len(shape), since
	for _, id := range shape {
		v.points = append(v.points, readPoint{instance: id})
	}
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
// global log may then have gone on through some that gave no read index, so all must be asked again.
func (v *ReadVector) Void(shape []protocol.InstanceID) bool {
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

// Reached reports whether a state serves the read. added says how much the state has added of each
// active instance, in their order.
func (v *ReadVector) Reached(added []protocol.Index) bool {
	switch {
	case v.missing == 0 && v.Mutant == member.MutantReadBeforeApplied:
		return true
	case v.Mutant == member.MutantReadOne:
		added = added[:1]
	}
	if v.missing > 0 || len(added) != len(v.points) {
		return false
	}
	for i := range added {
		if added[i] < v.points[i].index {
			return false
		}
	}
	return true
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
