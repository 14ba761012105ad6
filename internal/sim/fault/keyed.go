package fault

import (
	"github.com/braidlog/braid/internal/protocol/wpaxos"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/protocol"
)

// In a keyed order each group of keys has an order of its own, and a state machine of its own on each
// member. The judges look at each group as they look at the whole log elsewhere. Whether reads and writes of a
// key have an order, the history tells, which is judged key by key in any order.

// drawKeyed chooses who leads the groups, and takes enough keys that most groups have some. State machines on
// disk and bodies do not go with groups.
func (s *Settings) drawKeyed(d draw.Chance) {
	if !s.Keyed {
		return
	}
	s.Core.Leaders = [...]protocol.Leaders{protocol.LeadersTogether, protocol.LeadersSpread, protocol.LeadersAny}[d.Below(3)]
	if s.Protocol.Moves() {
		s.Core.Leaders = [...]protocol.Leaders{protocol.LeadersBegin, protocol.LeadersAny}[d.Below(2)]
		s.Core.Own = wpaxos.Steal.Set(s.Core.Own, wpaxos.Stealing{
			Policy: [...]wpaxos.StealPolicy{wpaxos.StealConsecutive, wpaxos.StealMajority, wpaxos.StealAverage}[d.Below(3)], After: 1 + d.Below(12),
		})
	}
	if s.InboxBytes > 0 {
		s.InboxBytes = max(s.InboxBytes, leastKeyedInbox*s.Instances)
	}
	s.Keys += d.Below(2 * s.Instances)
	if d.Yes(0.5) { // one group may have all the work while others are idle
		s.Load.Hot *= d.Share()
	}
	s.Load.Astray = 0.05 * d.Share()
}

// leastKeyedInbox, for each group, has space for a small message of each of some members. A read asks all groups, and their
// answers come together. With less, most of them would be refused again and again.
const leastKeyedInbox = 500
