package member

import (
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
)

// Followed returns the membership to which another instance should change. That is the first
// instance's, as applied, if its own is another one; nil if there is nothing to change. While
// either of them changes, it waits. The instances change one after the other. So the first makes
// its next change only when all have followed: see Settled.
func Followed(cluster *protocol.Config, st *protocol.Status) (target *protocol.Config) {
	if st.Config.Joint() || cluster.Joint() || len(cluster.Members) == 0 || st.Config.SameMembers(cluster) {
		return nil
	}
	return cluster
}

// MembershipFollower decides when a member proposes to an instance what Followed says. If the
// member leads the instance, it does so at once. Otherwise it does so only when the change has
// taken long. The instance's leader may have been removed from the first instance. It cannot know
// that, because it gets the first instance's entries no more. It is a pure rule; not safe for
// concurrent use.
type MembershipFollower struct {
	waits bool
	since time.Duration // since when there is a reason, or when the leader was last told
}

// Next returns what to propose now, nil if nothing.
func (f *MembershipFollower) Next(now, timeout time.Duration, cluster *protocol.Config, st *protocol.Status) *protocol.Config {
	target := Followed(cluster, st)
	switch {
	case target == nil:
		f.waits = false
	case st.Role == protocol.Leader:
		return target
	case !f.waits:
		f.waits, f.since = true, now
	case now-f.since >= timeout:
		f.since = now
		return target
	}
	return nil
}

// Settled reports whether all instances have followed the first one. first is the first instance's
// membership in force, configs are those that are applied. Only then may it change again.
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
		return !goneFrom(configs, id)
	})
	return out
}

// Linked is the membership that a member's links follow. latest are the memberships in the logs of
// its instances, applied are those that it has applied. A member that was removed stays until the
// removal is applied. One that is only in a log may be undone, and the removed member may lead then.
func Linked(latest, applied []protocol.Config) protocol.Config {
	return Union(slices.Concat(latest, applied))
}

// goneFrom reports whether all memberships have removed a member. While one is joint, the voters
// that it is leaving still count.
func goneFrom(configs []protocol.Config, id protocol.MemberID) bool {
	return !slices.ContainsFunc(configs, func(c protocol.Config) bool { return !slices.Contains(c.Removed, id) || c.Voter(id) })
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
