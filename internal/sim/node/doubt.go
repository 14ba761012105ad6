package node

import (
	"github.com/braidlog/braid/protocol"
)

// A member that runs on a copy of its disk, until it knows what is missing in the copy.

// Doubt is the state of a member that runs on a hot copy, until it has a message of the leader that knows.
type Doubt struct {
	Leader *Member
	Life   int // of the leader
	Term   protocol.Term
	Last   protocol.Index // of the copy
}

// hears reports whether a member may receive a message. In doubt, it receives only heartbeats of the leader that
// knows: entries that this leader sends again could complete the copy first. A heartbeat that names more than the
// copy has ends the doubt, unless power is lost before the member has recorded it. Nothing ends it behind a seal that
// the copy does not have: there the leader could send again what the copy has lost, and no heartbeat says so first.
func (m *Member) hears(msg *protocol.Message) bool {
	d := m.Doubt
	if d == nil {
		return true
	}
	j := m.Env.Court.Of(msg.Instance)
	acked := j.Core.Codec.ClaimsOf(msg).Acked
	heartbeat := acked > 0 || j.Core.Codec.Of(msg.Type).Delivery == protocol.BothWays
	if msg.From != d.Leader.ID || !heartbeat || msg.Term != d.Term && !j.Core.Judged.ManyLead {
		return false
	}
	if acked > d.Last && m.Of(msg.Instance) != nil { // an instance behind a seal that it has not begun tells it nothing
		m.Env.Tracef("%s is told that it acknowledged %d", m.ID, acked)
		m.endDoubt()
	}
	return true
}

// endDoubt ends the doubt once the member has processed the message and continues all the same. A member that waits
// for links before it takes part processes nothing yet.
func (m *Member) endDoubt() {
	m.Later(m.Env.Set.Heartbeat+m.Env.Set.HopMax, func() {
		if m.silent {
			m.endDoubt()
			return
		}
		m.Doubt = nil
	})
}
