package member

import (
	"time"

	"github.com/braidlog/braid/protocol"
)

// SnapshotSearch decides when a member asks for a snapshot because of an instance that it still needs
// to go on: when that has no leader for long while the first instance has one, it may be
// retired, and nobody keeps its log. It is a pure rule; not safe for concurrent use.
type SnapshotSearch struct {
	// lonely is when the instance's leader, or none of the first one, was last known.
	Lonely time.Duration
}

// searchAfter is how many election timeouts a member waits for an instance's leader before
// it asks whether the instance is retired.
const searchAfter = 5

// Next is whom to ask now, 0 for nobody. led says that the instance's leader is known; first
// is how the first instance stands here.
func (s *SnapshotSearch) Next(now, election time.Duration, led bool, first *protocol.Status) protocol.MemberID {
	if led || first.Leader == 0 {
		s.Lonely = now
		return 0
	}
	if now-s.Lonely < searchAfter*election {
		return 0
	}
	s.Lonely = now
	if first.Leader != first.Self {
		return first.Leader
	}
	// It leads already, and has not come to where this one is retired: another member, and
	// another one from time to time.
	members := first.Config.Members
	for i := range members {
		at := (int(now/election) + i) % len(members)
		if id := members[at].ID; id != first.Self {
			return id
		}
	}
	return 0
}
