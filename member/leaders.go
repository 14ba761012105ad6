package member

import (
	"time"

	"github.com/braidlog/braid/protocol"
)

// LeaderPreference decides when the leader of an instance hands over to the member that is preferred:
// after a crash others took its place, and it is back. It is a pure rule of each instance's
// event loop; not safe for concurrent use.
type LeaderPreference struct {
	to    protocol.MemberID
	since time.Duration // when to was first found fit, in one go until now
	again time.Duration // not before
}

// Next returns whom the leader of an instance should hand over to now; 0: nobody. st is its
// status; preferred 0 means that all is well as it is. A member is fit when it answers and
// lacks nothing for a whole timeout; after an attempt the next one is made much later, so
// that one that is not able to lead holds up nobody.
func (m *LeaderPreference) Next(now, timeout time.Duration, st *protocol.Status, preferred protocol.MemberID) protocol.MemberID {
	if st.Role != protocol.Leader || preferred == 0 || preferred == st.Self || !fit(st, preferred) {
		m.to = 0
		return 0
	}
	if m.to != preferred {
		m.to, m.since = preferred, now
	}
	if now-m.since < timeout || now < m.again {
		return 0
	}
	m.again = now + movePause*timeout
	return preferred
}

// movePause is how many times its timeout a leader waits between two attempts.
const movePause = 8

// moveBehind is by how many entries one may be behind who is to lead: the transfer waits
// for them, and meanwhile nothing is proposed.
const moveBehind = 1024

func fit(st *protocol.Status, id protocol.MemberID) bool {
	m := st.Config.Find(id)
	if m == nil || m.Learner || st.Config.Joint() {
		return false
	}
	for i := range st.Peers {
		if p := &st.Peers[i]; p.ID == id {
			return p.Active && !p.Snapshot && !p.Lacking && p.Match+moveBehind >= st.Last && p.Match >= st.First-1
		}
	}
	return false
}
