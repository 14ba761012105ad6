package member

import (
	"slices"

	"github.com/braidlog/braid/internal/transport"
	"github.com/braidlog/braid/protocol"
)

// Settled reports whether all instances have followed the first one. first is the first instance's membership in
// effect, configs are those that are applied. Only then may it change again.
func Settled(first *protocol.Config, configs []protocol.Config) bool {
	return !slices.ContainsFunc(configs, func(c protocol.Config) bool { return !c.SameMembers(first) })
}

// Union is all members of several memberships. These members are linked, and may hold bodies.
func Union(configs []protocol.Config) protocol.Config {
	if len(configs) == 1 {
		return configs[0].Clone()
	}
	out := configs[0].Clone()
	for i := range configs[1:] {
		c := &configs[i+1]
		for j := range c.Members {
			at, known := slices.BinarySearchFunc(out.Members, c.Members[j].ID, byID)
			if !known {
				out.Members = slices.Insert(out.Members, at, c.Members[j])
			}
		}
		for _, id := range c.Outgoing {
			if !slices.Contains(out.Outgoing, id) {
				out.Outgoing = append(out.Outgoing, id)
			}
		}
	}
	slices.Sort(out.Outgoing)
	// A member that is left in one of them is not removed.
	out.Removed = slices.DeleteFunc(out.Removed, func(id protocol.MemberID) bool {
		return !RemovedFromAll(configs, id)
	})
	return out
}

// Linked is the membership that a member's links follow. latest are the memberships in the logs of
// its instances, applied are those that it has applied. A member that was removed stays until the
// removal is applied. One that is only in a log may be undone, and the removed member may lead then.
func Linked(latest, applied []protocol.Config) protocol.Config {
	return Union(slices.Concat(latest, applied))
}

// RemovedFromAll reports whether all memberships have removed a member. While one is joint, the voters
// that it is leaving still count.
func RemovedFromAll(configs []protocol.Config, id protocol.MemberID) bool {
	return !slices.ContainsFunc(configs,
		func(c protocol.Config) bool { return !slices.Contains(c.Removed, id) || c.Voter(id) })
}

func byID(m protocol.Member, id protocol.MemberID) int {
	switch {
	case m.ID < id:
		return -1
	case m.ID > id:
		return 1
	}
	return 0
}

// Admit is 0 if a member may talk to one whose instances have applied those configurations; else
// it says why not. A member that is not known there may talk, because the one that it talks to may
// be behind. Only a member that is removed from all instances is refused: the instances that still
// have it need it.
func Admit(configs []protocol.Config, id protocol.MemberID) transport.Reason {
	if RemovedFromAll(configs, id) {
		return transport.ReasonRemoved
	}
	return 0
}
