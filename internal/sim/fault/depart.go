package fault

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// Removed members stop by themselves. Links repeat their handshake from time to time, and in a handshake the other
// side may refuse a member forever.

var (
	membersRemoved        = count.New("members_removed", "members removed")
	plannedStops          = count.New("planned_stops", "planned stops")
	leadershipsGiven      = count.New("leaderships_handed_over_before_a_stop", "leaders handed over before one")
	removedMembersStopped = count.New("removed_members_stopped", "removed members stopped")
)

// LeaveFor is a planned stop. The member transfers its leaderships, and runs meanwhile. Then it stops as in a power
// failure, which loses only data that no member relies on.
func LeaveFor(w *World, m *node.Member, back time.Duration) {
	w.Tracef("FAULT %s is told to stop", m.ID)
	w.Count(plannedStops)
	leaving, limit := instance.StopHandover{Config: m.Operations.Config}, w.Now()+w.Set.Election
	up := func(id protocol.MemberID) bool { return w.Member(id).Up && !w.Net.Link(m.ID, id).Cut }
	var step func()
	step = func() {
		gives, left := leaving.Next(m.Clock(), m.Statuses(), up, m.Drained())
		if left || w.Now() >= limit {
			w.Tracef("%s stops, as it was told", m.ID)
			if w.From(node.WriterPauses).Yes(0.5) {
				m.Writer.Close()
			}
			m.Crash()
			w.StartLater(m, back)
			return
		}
		w.Events.Add(leadershipsGiven, len(gives))
		m.Tell(gives)
		m.Later(w.Set.Tick, step)
	}
	m.WhenAwake(step)
}

// Expelled implements node.Observer: it stops a member that has detected its removal. It checks that every instance
// has decided the removal. After damage the others may not hold enough without this member. Then it continues to run:
// the faults have to leave enough data, not the member.
func (w *World) Expelled(m *node.Member, why *member.ExpelledError) {
	for _, c := range w.Court.All {
		if !c.Ended && !c.Left[m.ID] {
			w.Violate(m.ID, fmt.Errorf("stops although instance %d has not decided to go on without it: %w", c.ID, why))
			return
		}
	}
	if !Recoverable(w, w.Except(m)) {
		return
	}
	w.Tracef("%s stops: %v", m.ID, why)
	w.Count(removedMembersStopped)
	m.Crash()
	m.Gone = true
}

// retire stops members that a committed configuration has removed. They never start again.
func retire(w *World, removed []protocol.MemberID) {
	for _, id := range removed {
		m := w.Member(id)
		if m.Gone || m.Retiring {
			continue
		}
		m.Retiring = true
		w.Count(membersRemoved)
		if w.Chance(0.5) {
			continue // it is not switched off, and must detect its removal itself
		}
		w.After(w.Between(0, 10*w.Set.Election), func() {
			if m.Gone {
				return
			}
			if !Recoverable(w, w.Except(m)) {
				m.Retiring = false // not yet
				return
			}
			w.Tracef("FAULT %s is switched off: it was removed", m.ID)
			m.Crash()
			m.Gone = true
		})
	}
}
