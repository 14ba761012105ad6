package instance

import (
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/transport"
	"github.com/braidlog/braid/protocol"
)

// Departure decides when a member stops because the cluster continues without it. Its own log may
// say so in every instance, or a member that knows this refuses its link. Being behind is no
// reason, and neither is being removed from some instances only. It is a pure rule; not safe for
// concurrent use.
type Departure struct {
	refused *member.ExpelledError
	left    bool
	since   time.Duration // since when every instance is seen to continue without it
	Mutant  mutant.Name   // weave-depart-any
}

// Refused notes that another member refused the link of this one, and why.
func (d *Departure) Refused(self, by protocol.MemberID, reason transport.Reason) {
	if d.refused == nil && reason.Final() {
		d.refused = &member.ExpelledError{Member: self, By: by, Reason: reason}
	}
}

// Next returns why to stop now, nil to continue. A member whose own log says that it was removed
// stays for a timeout. Meanwhile it tells others what they need to continue, and its clients how
// their request to remove it ended.
func (d *Departure) Next(now, timeout time.Duration, at *order.Cursor,
	instances []*protocol.Status) *member.ExpelledError {
	if d.refused != nil {
		return d.refused
	}
	gone := Expelled(at, instances)
	for i := range instances {
		if d.Mutant == member.MutantDepartAny && gone == nil {
			gone = Expelled(at, instances[i:i+1])
		}
	}
	switch {
	case gone == nil:
		d.left = false
	case !d.left:
		d.left, d.since = true, now
	case now-d.since >= timeout:
		return gone
	}
	return nil
}

// Expelled is not nil if a member's own log says that all instances continue without it, and none of them needs it for
// that to be committed. instances are the active ones at a place in the global log. The first one may have committed
// more than is applied there. As long as that is so, other instances may have begun since, and these count on the
// member.
func Expelled(at *order.Cursor, instances []*protocol.Status) *member.ExpelledError {
	if first := instances[0]; !at.Keyed && at.Point(first.Instance).Index < first.Commit {
		return nil
	}
	for _, st := range instances {
		if !st.Removed || st.Role == protocol.Leader {
			return nil
		}
	}
	return member.NewRemoved(instances[0].Self)
}
