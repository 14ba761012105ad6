package instance

import (
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// LeaderPreference decides when the leader of an instance hands over to the member that is
// preferred. It does so when others took that member's place after a crash, and that member is
// back. It is a pure rule of each instance's event loop; not safe for concurrent use.
type LeaderPreference struct {
	to    protocol.MemberID
	since time.Duration // since when to has been found fit without a break
	again time.Duration // the next attempt comes no sooner
}

// Next returns to whom the leader of an instance should hand over now; 0: none. st is its status. preferred = 0 means
// that all is well as it is. A member is fit when it answers and has all that a leader needs for a whole timeout. After
// an attempt the next one is made much later, so that a member that is not able to lead holds up no one.
func (m *LeaderPreference) Next(now, timeout time.Duration, st *protocol.Status,
	preferred protocol.MemberID) protocol.MemberID {
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

func fit(st *protocol.Status, id protocol.MemberID) bool {
	m := st.Config.Find(id)
	if m == nil || m.Learner || st.Config.Joint() {
		return false
	}
	for i := range st.Peers {
		if p := &st.Peers[i]; p.ID == id {
			return member.KeepsUp(p, st.Last) && !p.Lacking && p.Match >= st.First-1
		}
	}
	return false
}
