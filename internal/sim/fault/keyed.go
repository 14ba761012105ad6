package fault

import (
	"github.com/braidlog/braid/internal/protocol/wpaxos"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/protocol"
)

// In a keyed order each group of keys has an order of its own, and a state machine of its own on each member. The
// judges check each group as they check the whole log elsewhere. The history shows whether reads and writes of a key
// are linearizable. It is checked key by key in every order.

// drawKeyed draws the leaders of the groups, and enough keys that most groups have some. Groups do not support state
// machines on disk or bodies.
func (s *Settings) drawKeyed(d draw.Chance) {
	if !s.Keyed {
		return
	}
	s.Core.Leaders = [...]protocol.Leaders{
		protocol.LeadersTogether, protocol.LeadersSpread, protocol.LeadersAny,
	}[d.Below(3)]
	if s.Protocol.Moves() {
		s.Core.Leaders = [...]protocol.Leaders{protocol.LeadersBegin, protocol.LeadersAny}[d.Below(2)]
		s.Core.Own = wpaxos.Steal.Set(s.Core.Own, wpaxos.Stealing{
			Policy: [...]wpaxos.StealPolicy{
				wpaxos.StealConsecutive, wpaxos.StealMajority, wpaxos.StealAverage,
			}[d.Below(3)],
			After: 1 + d.Below(12),
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

// leastKeyedInbox is the space, for each group, for small messages from several members. A read asks all groups, and
// their replies arrive together. With less space, most of them would be refused repeatedly.
const leastKeyedInbox = 500
