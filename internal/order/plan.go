package order

import (
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Plan lists what members do when the global log reaches a place. It depends only on the log, so all members have the
// same plan for the same place. A member carries it out when its order has come there, which may be long before its
// state machine does. Nothing of a plan is on disk but what the instances write themselves: the log leads to it again.
//
// The leader of an instance is not part of a plan: that follows from its place among those active
// (see protocol.Leaders).
type Plan struct {
	// At is the place. Its instances are active from there on.
	At Cursor
	// Begin are the instances of At that were not active just before, ascending. They begin at their
	// points of At. End are those that are no longer active. Entries of these that At does not count
	// are void.
	Begin, End []protocol.InstanceID
	// Members is the instance with whose membership, as it is at the place, new ones begin. Each
	// instance's later memberships are its own.
	Members protocol.InstanceID
}

// PlanTo is the plan that leads from the instances that are active to those of a place.
func PlanTo(before []protocol.InstanceID, at Cursor) *Plan {
	p := &Plan{At: at, Members: at.Points[0].Instance}
	after := at.Instances()
	for _, id := range after {
		if !slices.Contains(before, id) {
			p.Begin = append(p.Begin, id)
		}
	}
	for _, id := range before {
		if !slices.Contains(after, id) {
			p.End = append(p.End, id)
		}
	}
	return p
}

// Changes reports whether other instances are active than before.
func (p *Plan) Changes() bool { return len(p.Begin)+len(p.End) > 0 }
