package replica

import (
	"time"

	"github.com/braidlog/braid/protocol"
)

// Mover decides when the leader of an instance hands over to the member that is preferred:
// after a crash others took its place, and it is back. It is a pure rule of each instance's
// event loop; not safe for concurrent use.
type Mover struct {
	to    protocol.MemberID
	since time.Duration // when to was first found fit, in one go until now
	again time.Duration // not before
	alone time.Duration // since when the first instance has no leader; 0: it has one
}

// Next returns whom the leader of an instance should hand over to now; 0: nobody. st is its
// status; preferred 0 means that all is well as it is. A member is fit when it answers and
// lacks nothing for a whole patience; after an attempt the next one is made much later, so
// that one that is not able to lead holds up nobody.
func (m *Mover) Next(now, patience time.Duration, st *protocol.Status, preferred protocol.MemberID) protocol.MemberID {
	if st.Role != protocol.Leader || preferred == 0 || preferred == st.Self || !fit(st, preferred) {
		m.to = 0
		return 0
	}
	if m.to != preferred {
		m.to, m.since = preferred, now
	}
	if now-m.since < patience || now < m.again {
		return 0
	}
	m.again = now + movePause*patience
	return preferred
}

// Leave reports whether the leader of an instance should give it away to whoever is fit: the
// first instance has had no leader for long, as far as is known here. It cannot learn then
// who the members are, perhaps that it is none, nor apply anything.
func (m *Mover) Leave(now, patience time.Duration, st *protocol.Status, first protocol.MemberID) bool {
	if st.Role != protocol.Leader || first != 0 {
		m.alone = 0
		return false
	}
	if m.alone == 0 {
		m.alone = now
	}
	if now-m.alone < leaveAfter*patience {
		return false
	}
	m.alone = now
	return true
}

// leaveAfter is how many times its patience a leader waits for one of the first instance.
const leaveAfter = 4

// movePause is how many times its patience a leader waits between two attempts.
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
