package order

import (
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Plan lists the actions of members when the global log reaches a place. It depends only on the log, so all members
// have the same plan for the same place. A member carries it out when its order reaches the place, which may be long
// before its state machine does. A plan is not on disk: it follows from the log again.
//
// The leader of an instance is not part of a plan: it follows from the instance's place among the active ones (see
// protocol.Leaders).
type Plan struct {
	// At is the place. Its instances are active from there on.
	At Cursor
	// Begin are the instances of At that were not active just before, ascending. They begin at their points of At. End
	// are those that are no longer active. Their entries after At are void.
	Begin, End []protocol.InstanceID
	// Members is the instance whose membership at the place new instances begin with. Later, each instance has its own
	// membership.
	Members protocol.InstanceID
	// Seal is set where the log is sealed: all instances before are in End, and what begins has the seal's profile.
	// Ended are the instances of End, with the last entry of each that is part of the log.
	Seal  *OpenSeal
	Ended []protocol.EndedLog
}

// PlanTo is the plan that leads from the active instances to those of a place.
func PlanTo(before []protocol.InstanceID, at Cursor) *Plan {
	p := &Plan{At: at, Members: before[0]}
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

// Seals reports whether the plan ends all instances before it. What they did not decide before its place is void, and
// no member takes part in them any longer.
func (p *Plan) Seals() bool { return !slices.Contains(p.At.Instances(), p.Members) }

// Changes reports whether other instances are active than before.
func (p *Plan) Changes() bool { return len(p.Begin)+len(p.End) > 0 }
