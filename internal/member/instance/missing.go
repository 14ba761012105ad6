package instance

import (
	"time"

	"github.com/braidlog/braid/protocol"
)

// SnapshotSearch decides when a member asks for a snapshot because of an instance that it still needs to continue.
// That is when the instance has had no leader for long while the first instance has one. The instance may be retired
// then, and no one keeps its log. It is a pure rule; not safe for concurrent use.
type SnapshotSearch struct {
	// Lonely is when the instance's leader was last known, or the first instance's was last not known, or someone was
	// last asked.
	Lonely time.Duration
}

// searchAfter is how many election timeouts a member waits for an instance's leader before
// it asks whether the instance is retired.
const searchAfter = 5

// Next is whom to ask now, 0: none. led says that the instance's leader is known. first is how the first instance
// stands here.
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
	// This member leads the first instance, and has not come to where this instance is retired. So
	// it asks the other members in turn. Some of them may be down.
	return inTurn(now, searchAfter*election, first)
}

// Beyond is whom to ask now by a member that has begun the instances behind a seal and cannot come there by its own
// logs, 0: none. first is how the first instance stands here, which is closed.
func (s *SnapshotSearch) Beyond(now, election time.Duration, first *protocol.Status) protocol.MemberID {
	if now-s.Lonely < election {
		return 0
	}
	s.Lonely = now
	return inTurn(now, election, first)
}

// inTurn is a member other than this one, another one in each interval.
func inTurn(now, interval time.Duration, first *protocol.Status) protocol.MemberID {
	members := first.Config.Members
	for i := range members {
		at := (int(now/interval) + i) % len(members)
		if id := members[at].ID; id != first.Self {
			return id
		}
	}
	return 0
}
