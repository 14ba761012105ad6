package instance

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// Successor is to whom the leader of an instance hands over before its member stops. That is prefer, if it is fit and
// its link is up. Otherwise it is the most advanced of the voters that answer and whose links are up, of equal ones one
// in the same zone. 0: there is no one, the member does not lead, or who leads follows from the log. It is a pure rule.
func Successor(st *protocol.Status, prefer protocol.MemberID, up func(protocol.MemberID) bool) protocol.MemberID {
	if st.Role != protocol.Leader || st.Epoch != nil {
		return 0
	}
	if prefer != 0 && fit(st, prefer) && up(prefer) {
		return prefer
	}
	var best *protocol.PeerStatus
	for i := range st.Peers {
		p := &st.Peers[i]
		m := st.Config.Find(p.ID)
		if m == nil || m.Learner || !p.Active || p.Snapshot || !up(p.ID) {
			continue
		}
		nearer := best != nil && st.Config.Near(st.Self, p.ID) && !st.Config.Near(st.Self, best.ID)
		if best == nil || p.Match > best.Match || p.Match == best.Match && nearer {
			best = p
		}
	}
	if best == nil {
		return 0
	}
	return best.ID
}

// leads reports whether a member leads in the epoch under way, and another voter's link is up.
func leads(st *protocol.Status, up func(protocol.MemberID) bool) bool {
	return st.Epoch != nil &&
		slices.ContainsFunc(st.Epoch.Segments, func(s protocol.SegmentStatus) bool { return s.Leader == st.Self }) &&
		slices.ContainsFunc(st.Config.Voters(), func(id protocol.MemberID) bool { return id != st.Self && up(id) })
}

// StopHandover hands over all that a member leads, before it stops or while it is drained. Where one member is to lead
// all instances, they go to the same one. Where leaders follow from the log, the member reports to the instance that
// it stops, and waits for an epoch in which it does not lead. It is a pure rule; not safe for concurrent use.
type StopHandover struct {
	Config member.OperationConfig
	// Drains: the member is drained and does not stop, so it keeps the instances that only other drained members could
	// lead.
	Drains bool
	asked  map[protocol.InstanceID]time.Duration
}

// Next returns the inputs with which instances are handed over now. left reports that there is nothing to wait for any
// more: no other member could lead the instances that are still led here. A handover that has no effect is tried again.
// instances are the active ones on this member. Drained members get an instance only if no other one could lead it, and
// this member stops.
func (l *StopHandover) Next(now time.Duration, instances []*protocol.Status, up func(protocol.MemberID) bool,
	drained []protocol.MemberID) (gives []member.InstanceInput, left bool) {
	gives, left = l.next(now, instances, func(id protocol.MemberID) bool {
		return up(id) && (!slices.Contains(drained, id) || l.Config.Mutant == member.MutantDrainToDrained)
	})
	if left && !l.Drains && len(drained) > 0 {
		return l.next(now, instances, up)
	}
	return gives, left
}

// next is Next if the members for which up is false must not lead.
func (l *StopHandover) next(now time.Duration, instances []*protocol.Status,
	up func(protocol.MemberID) bool) (gives []member.InstanceInput, left bool) {
	if l.asked == nil {
		l.asked = map[protocol.InstanceID]time.Duration{}
	}
	prefer, left := protocol.MemberID(0), true
	for i, st := range instances {
		to := Successor(st, prefer, up)
		if i == 0 && !l.Config.Leaders.Apart() {
			if prefer = st.Leader; st.Role == protocol.Leader {
				prefer = to
			}
		}
		var give protocol.Input = protocol.Transfer{To: to}
		if leads(st, up) {
			give = protocol.Stopping{}
		} else if to == 0 {
			continue
		}
		left = false
		if at, ok := l.asked[st.Instance]; !ok || now-at >= 2*l.Config.Heartbeat {
			l.asked[st.Instance] = now
			gives = append(gives, member.InstanceInput{Instance: st.Instance, Input: give})
		}
	}
	return gives, left
}
