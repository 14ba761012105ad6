package member

import (
	"time"

	"github.com/braidlog/braid/protocol"
)

// A state machine on disk may find its state damaged. The member's log is as good as before, so
// the member goes on to take part. But it applies nothing and serves nothing until it has the
// state of another member. It asks one member after the other for it.

// StateRepair decides whom a member asks for a state, if its own is damaged. It is a pure rule;
// not safe for concurrent use.
type StateRepair struct {
	next  time.Duration // when to ask (again)
	tries int
}

const (
	// mendRefused is after how many election timeouts the next member is asked if one could not
	// help. mendBegun is the same if one began to send: it reads its whole state first.
	mendRefused = 1
	mendBegun   = 60
)

// Next is whom to ask now, 0 for nobody. It goes through the members one after the other.
func (m *StateRepair) Next(now, election time.Duration, st *protocol.Status) protocol.MemberID {
	if now < m.next {
		return 0
	}
	members := st.Config.Members
	for range members {
		m.tries++
		if to := members[m.tries%len(members)].ID; to != st.Self {
			m.next = now + mendBegun*election
			return to
		}
	}
	return 0
}

// Refused says that the member which was asked cannot help, or that what it sent was of no use.
func (m *StateRepair) Refused(now, election time.Duration) { m.next = now + mendRefused*election }
