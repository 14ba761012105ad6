package instance

import (
	"cmp"
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
)

// Drained is which members are to lead nothing, as they say themselves. A member is believed for a while, and says it
// again before that ends. So it ends by itself if the member restarts. It is a pure rule; not safe for concurrent use.
type Drained struct{ all []drainedMember } // ascending

type drainedMember struct {
	id    protocol.MemberID
	until time.Duration
}

// drainedFor is for how many election timeouts a member is believed.
const drainedFor = 6

// Note takes in that a member is drained, or is not any more.
func (d *Drained) Note(now, election time.Duration, id protocol.MemberID, drained bool) {
	at, known := slices.BinarySearchFunc(d.all, id, func(m drainedMember, id protocol.MemberID) int {
		return cmp.Compare(m.id, id)
	})
	switch {
	case known && drained:
		d.all[at].until = now + drainedFor*election
	case known:
		d.all = slices.Delete(d.all, at, at+1)
	case drained:
		d.all = slices.Insert(d.all, at, drainedMember{id, now + drainedFor*election})
	}
}

// Now are the drained members, ascending.
func (d *Drained) Now(now time.Duration) (ids []protocol.MemberID) {
	for _, m := range d.all {
		if now < m.until {
			ids = append(ids, m.id)
		}
	}
	return ids
}
