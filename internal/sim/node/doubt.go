package node

import (
	"github.com/braidlog/braid/protocol"
)

// What a member on a copy of its disk does until it knows what the copy lacks.

// Doubt is what concerns a member that runs on a hot copy, until it has heard the leader who knows.
type Doubt struct {
	Leader *Member
	Life   int // of the leader
	Term   protocol.Term
	Last   protocol.Index // of the copy
}

// hears reports whether a member may take a message. While it is in doubt, it hears only the
// heartbeats of the leader who knows: what that leader sends again could make the copy whole before.
// A heartbeat that names more than the copy holds ends that, unless power is lost before the member
// has noted it.
func (m *Member) hears(msg *protocol.Message) bool {
	d := m.Doubt
	if d == nil {
		return true
	}
	codec := m.Env.Set.codec()
	acked := codec.ClaimsOf(msg).Acked
	heartbeat := acked > 0 || codec.Of(msg.Type).Delivery == protocol.BothWays
	if msg.From != d.Leader.ID || !heartbeat || msg.Term != d.Term && !m.Env.Set.Protocol.Core.Judged.ManyLead {
		return false
	}
	if acked > d.Last {
		m.Env.Tracef("%s is told that it acknowledged %d", m.ID, acked)
		m.endDoubt()
	}
	return true
}

// endDoubt ends the doubt once the member has taken in what it heard: it goes on all the same. A member that waits for
// links before it takes part takes in nothing yet.
func (m *Member) endDoubt() {
	m.Later(m.Env.Set.Heartbeat+m.Env.Set.HopMax, func() {
		if m.silent {
			m.endDoubt()
			return
		}
		m.Doubt = nil
	})
}
