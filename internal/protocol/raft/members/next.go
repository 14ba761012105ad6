package members

import (
	"cmp"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Next returns the configuration after the active one that is asked for, and sets in.Changes to the differences.
// bodies: there are bodies in parts.
func Next(active *protocol.Config, in *protocol.ProposeChange, bodies bool) (protocol.Config, protocol.Reason) {
	if in.Target == nil {
		return active.Changed(in.Changes)
	}
	next, ok := active.Follow(in.Target)
	joinFirst(active, &next, bodies)
	if !ok || len(in.Changes) > 0 || next.SameMembers(active) {
		return next, protocol.ReasonInvalidChange
	}
	in.Changes = protocol.Changes(active, &next)
	return next, protocol.ReasonNone
}

// joinFirst makes learners of members that are voters in another instance and not known to this
// one. They count here once they are caught up here. If voters leave at the same time, the new ones
// may be the only ones that remain, so then they count at once. But they hold nothing of the bodies
// that there are. If there are any, the leaving voters stay until the new ones have their parts:
// else no one might have enough of them, so that the change could never be made.
func joinFirst(active, next *protocol.Config, bodies bool) {
	known := func(m *protocol.Member) bool { return active.Find(m.ID) != nil }
	if slices.ContainsFunc(active.Voters(), func(id protocol.MemberID) bool { return next.Find(id) == nil }) {
		joined := active.Clone()
		for i := range next.Members {
			if m := &next.Members[i]; !known(m) {
				joined.Members = append(joined.Members, *m)
			}
		}
		if !bodies || len(joined.Members) == len(active.Members) {
			return
		}
		slices.SortFunc(joined.Members, func(a, b protocol.Member) int { return cmp.Compare(a.ID, b.ID) })
		joined.Slots = next.Slots
		joined.Number()
		*next = joined
	}
	for i := range next.Members {
		if m := &next.Members[i]; !known(m) && !m.Learner {
			m.Learner, m.Joining = true, true
		}
	}
}

// Joins reports whether a configuration has members that are to become voters.
func Joins(c *protocol.Config) bool {
	return slices.ContainsFunc(c.Members, func(m protocol.Member) bool { return m.Joining })
}

// SameVoters reports whether two configurations have the same voters.
func SameVoters(a, b *protocol.Config) bool { return slices.Equal(a.Voters(), b.Voters()) }

// OneApart reports whether two sets of voters differ by one member at most: then every
// majority of one meets every majority of the other, and no joint step is needed.
func OneApart(a, b []protocol.MemberID) bool {
	n := 0
	for _, id := range a {
		if !slices.Contains(b, id) {
			n++
		}
	}
	for _, id := range b {
		if !slices.Contains(a, id) {
			n++
		}
	}
	return n <= 1
}

// Fenced reports whether a configuration has other voters than the active one, or is without a member that may have a
// lane.
func Fenced(active, next *protocol.Config) bool {
	return next.Joint() || !SameVoters(active, next) ||
		slices.ContainsFunc(active.Members, func(m protocol.Member) bool { return next.Find(m.ID) == nil })
}

// Inherit makes new members hold whole what the others do.
func Inherit(active, next *protocol.Config) {
	for i := range next.Members {
		m := &next.Members[i]
		if most := active.MaxRows(); active.Find(m.ID) == nil && most > 0 {
			m.WholeAbove = most
			next.Restripes = active.Restripes + 1
		}
	}
}
