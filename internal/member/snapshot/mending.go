package snapshot

import (
	"errors"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// A state machine on disk may find its state damaged. The member's log is as good as before, so
// the member continues to take part. But it applies nothing and serves nothing until it has the
// state of another member. It asks one member after the other for it. As long as nothing comes, it
// asks the one that agreed to send whether that still sends: the other may have started again, or
// may have been unable to send.

// StateQuestion is what a member asks another one whose state it needs.
type StateQuestion struct {
	order.Cursor      // what the state must include
	Again        bool `json:"again,omitempty"` // whether the state is still on its way

	// Number is the question's. Within is how long the answer may take.
	Number uint64        `json:"-"`
	Within time.Duration `json:"-"`
}

// StateRepair decides whom a member asks for a state, if its own is damaged. It is a pure rule;
// not safe for concurrent use.
type StateRepair struct {
	needs *order.Cursor // what the other state must include; nil: this member's own is good
	// asked is the member that was asked for its state, unless it cannot send it; 0: none. open
	// says that the answer to the last question has not come. trying says that a snapshot has come,
	// and Apply has not said yet whether it is of use. Without needs, none of them is set.
	asked  protocol.MemberID
	open   bool
	trying bool
	number uint64        // of the last question
	next   time.Duration // when to ask (again)
	until  time.Duration // when another member is asked, although this one says that it still sends
	tries  int
}

const (
	// mendRefused is after how many election timeouts the next member is asked if one could not
	// help, and after how many it is asked whether it still sends.
	mendRefused = 1
	// mendBegun is after how many election timeouts the next member is asked if one said that it
	// sends, and nothing comes: that one may have to apply much first.
	mendBegun = 60
	// mendAnswer is how many election timeouts an answer may take.
	mendAnswer = 10
)

// Repairing reports whether the state is damaged. Wants reports whether a snapshot may replace it
// that is no further than what was applied.
func (m *StateRepair) Repairing() bool { return m.needs != nil }
func (m *StateRepair) Wants() bool     { return m.needs != nil && !m.trying }

// Damaged says that the state is damaged and what another one must include; nil: it is good.
func (m *StateRepair) Damaged(needs *order.Cursor) {
	*m = StateRepair{needs: needs, number: m.number, tries: m.tries}
}

// Next is whom to ask now, and what; 0: none. It goes through the members one after the other, in each turn through
// those in this member's zone first, as a state may be large.
func (m *StateRepair) Next(now, election time.Duration, st *protocol.Status) (to protocol.MemberID, q StateQuestion) {
	if m.needs == nil || m.open || m.trying || now < m.next {
		return 0, q
	}
	again := m.asked != 0 && now < m.until
	if !again {
		if m.asked = m.other(st); m.asked == 0 {
			return 0, q
		}
		m.until = now + mendBegun*election
	}
	m.number++
	m.open, m.next = true, now+mendRefused*election
	return m.asked, StateQuestion{Cursor: *m.needs, Again: again, Number: m.number, Within: mendAnswer * election}
}

// other is the next member to ask, 0 if there is none. A member that joined may know no members until it has a state,
// and is sent no more of the log until it applies what it has: it asks its leader.
func (m *StateRepair) other(st *protocol.Status) protocol.MemberID {
	members := nearest(&st.Config, st.Self)
	if len(members) == 0 && st.Leader != st.Self {
		return st.Leader
	}
	for range members {
		m.tries++
		if to := members[m.tries%len(members)].ID; to != st.Self {
			return to
		}
	}
	return 0
}

// nearest has the members of a configuration, and if this one has a zone, itself first, and then those of its zone.
func nearest(c *protocol.Config, self protocol.MemberID) []protocol.Member {
	if m := c.Find(self); m == nil || m.Zone == "" {
		return c.Members
	}
	distance := func(m protocol.Member) int {
		switch {
		case m.ID == self:
			return 0
		case c.Near(self, m.ID):
			return 1
		}
		return 2
	}
	members := slices.Clone(c.Members)
	slices.SortStableFunc(members, func(a, b protocol.Member) int { return distance(a) - distance(b) })
	return members
}

// Answered says what the answer to a question was: nil if the state is on its way.
func (m *StateRepair) Answered(now, election time.Duration, q StateQuestion, err error) {
	if !m.open || q.Number != m.number {
		return
	}
	if m.open = false; err != nil && !m.trying {
		m.Refused(now, election)
	}
}

// Refused says that the member which was asked cannot help, or that what came was of no use.
func (m *StateRepair) Refused(now, election time.Duration) {
	m.asked, m.trying = 0, false
	m.next = now + mendRefused*election
}

// Arrived says that a snapshot has come. It reports whether it may take the place of the state.
func (m *StateRepair) Arrived() bool {
	m.trying = m.needs != nil
	return m.trying
}

// Check verifies the invariants.
func (m *StateRepair) Check() error {
	if m.needs == nil && (m.asked != 0 || m.open || m.trying) {
		return errors.New("repair of the state: another state is asked for, but this one is good")
	}
	return nil
}
