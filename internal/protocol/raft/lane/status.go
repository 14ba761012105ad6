package lane

import (
	"cmp"
	"slices"

	"github.com/braidlog/braid/internal/protocol/raft/members"
	"github.com/braidlog/braid/protocol"
)

// Status describes what this member knows of lanes; nil: there are none.
func (l *Lanes) Status(v *View) *protocol.LanesStatus {
	if l == nil || !v.on() && len(l.confirmed.marks) == 0 && len(l.held) == 0 {
		return nil
	}
	s := &protocol.LanesStatus{
		Own: l.own.lane, Open: l.isOpen(), Accepted: l.own.accepted, Generation: l.confirmed.gen,
		Accepting: l.confirmed.open && l.fence.number <= l.confirmed.gen,
		Fence:     l.lead.fence.change != nil, Window: v.window(), Counts: l.counts,
		ByLeader: l.own.shorter.byLeader, LaneTime: l.own.shorter.lane, LeaderTime: l.own.shorter.leader,
		Lanes: make([]protocol.LaneStatus, 0, max(len(l.confirmed.marks), len(l.held))),
	}
	for _, m := range l.confirmed.marks {
		if _, held := l.find(m.lane); !held {
			s.Lanes = append(s.Lanes, protocol.LaneStatus{Lane: m.lane, Confirmed: m.to, Durable: m.to, Held: m.to})
		}
	}
	for _, h := range l.held {
		s.Lanes = append(s.Lanes, protocol.LaneStatus{
			Lane: h.lane, Confirmed: h.base, Durable: h.durable(v.Disk), Held: h.high(), HeldBytes: h.bytes,
		})
	}
	slices.SortFunc(s.Lanes, func(a, b protocol.LaneStatus) int { return compareLanes(a.Lane, b.Lane) })
	for i := range s.Lanes {
		if s.Lanes[i].Lane == s.Own {
			s.Accepted = max(s.Accepted, s.Lanes[i].Confirmed)
		}
		for _, n := range []*uint64{&s.Lanes[i].Confirmed, &s.Lanes[i].Durable, &s.Lanes[i].Held} {
			*n %= openings
		}
	}
	s.Accepted %= openings
	return s
}

func compareLanes(a, b protocol.Lane) int {
	return cmp.Or(cmp.Compare(a.Member, b.Member), cmp.Compare(a.Incarnation, b.Incarnation))
}

// Signaled is what sending a frame with signals spared, and what it did not.
type Signaled struct{ spared, whole, groups uint64 }

// CountSignaled counts a frame that is sent.
func (l *Lanes) CountSignaled(s Signaled) {
	if s != (Signaled{}) {
		c := &l.counts
		c.SparedBytes, c.WholeBytes, c.WholeGroups = c.SparedBytes+s.spared, c.WholeBytes+s.whole, c.WholeGroups+s.groups
	}
}

// Waiting is the configuration of the change that waits for a fence; nil if none does. The caller may no longer
// wait.
func (l *Lanes) Waiting(v *View) *protocol.Config {
	if l == nil || l.lead.fence.change == nil {
		return nil
	}
	change := *l.lead.fence.change
	if next, reason := members.Next(v.Members.Config, &change, v.MaxK() > 0); reason == protocol.ReasonNone {
		return &next
	}
	return nil
}
