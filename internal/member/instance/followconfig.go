package instance

import (
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
func (f *MembershipFollower) Next(now, timeout time.Duration, cluster *protocol.Config,
	st *protocol.Status) *protocol.Config {
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
