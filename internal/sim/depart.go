package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/protocol"
)

// Members that were removed stop by themselves. From time to time links make a handshake. In it the
// other side may say that it refuses a member forever.

var (
	membersRemoved        = count.New("members_removed", "members removed")
	plannedStops          = count.New("planned_stops", "planned stops")
	leadershipsGiven      = count.New("leaderships_handed_over_before_a_stop", "leaders handed over before one")
	removedMembersStopped = count.New("removed_members_stopped", "removed members stopped")
)

// leave is a stop that the operator asks for. The member hands over what it leads, and goes on
// meanwhile. Then it ends as if power was lost, which loses only what no member relies on.
func (w *World) leave(m *Member, back time.Duration) {
	w.Tracef("FAULT %s is told to stop", m.id)
	w.Count(plannedStops)
	leaving, limit := instance.StopHandover{Config: m.operations.Config}, w.Now()+w.set.Election
	up := func(id protocol.MemberID) bool { return w.member(id).up && !w.net.Link(m.id, id).Cut }
	var step func()
	step = func() {
		gives, left := leaving.Next(m.clock(), m.statuses(), up)
		if left || w.Now() >= limit {
			w.Tracef("%s stops, as it was told", m.id)
			if w.From(writerPauses).Yes(0.5) {
				m.writer.close()
			}
			m.crash()
			w.startLater(m, back)
			return
		}
		w.Events.Add(leadershipsGiven, len(gives))
		m.tell(gives)
		m.later(w.set.Tick, step)
	}
	m.whenAwake(step)
}

// expelled implements observer: it stops a member that found out that the cluster goes on without it. It judges that this is
// true: every instance must have decided it. After damage the others may not hold enough without
// this member. Then it goes on: the faults must leave enough, not the member.
func (w *World) expelled(m *Member, why *member.ExpelledError) {
	for _, c := range w.court.All {
		if !c.Ended && !c.Left[m.id] {
			w.Violate(m.id, fmt.Errorf("stops although instance %d has not decided to go on without it: %w", c.ID, why))
			return
		}
	}
	if !w.recoverable(w.except(m)) {
		return
	}
	w.Tracef("%s stops: %v", m.id, why)
	w.Count(removedMembersStopped)
	m.crash()
	m.gone = true
}

// stranded reports whether a member still runs although the cluster goes on without it. A member
// cannot find that out if no running member knows it that it can dial. Members that knew it may have been removed too,
// and have stopped, or they have moved and it was not told where.
func (w *World) stranded(m *Member) bool {
	if !m.up || !w.recoverable(w.except(m)) {
		return false
	}
	if !slices.ContainsFunc(w.members, func(o *Member) bool {
		return o != m && o.up && m.links.Has(o.id) && m.knowsPlaceOf(o) && member.Admit(o.memberships(), m.id).Final()
	}) {
		return false
	}
	for _, c := range w.court.All {
		if !c.Ended && !c.Left[m.id] {
			return false
		}
	}
	return true
}

// demandDepartures gives removed members a bounded time in which they must find out that they were
// removed. Some member that runs knows it, because the others reach the same state.
func (w *World) demandDepartures(alive []*Member) {
	var last *Member
	gone := func() bool {
		for _, m := range alive {
			if w.stranded(m) {
				last = m
				return false
			}
		}
		return true
	}
	if limit := 20*w.set.Election + 100*time.Duration(len(alive))*w.set.Tick; !w.RunUntil(w.Now()+limit, gone) && w.Broken == nil {
		w.Violate(last.id, fmt.Errorf("was removed, and still runs %s after the others could tell it", limit))
	}
}

// retire stops members that a committed configuration has removed. They never start again.
func (w *World) retire(removed []protocol.MemberID) {
	for _, id := range removed {
		m := w.member(id)
		if m.gone || m.retiring {
			continue
		}
		m.retiring = true
		w.Count(membersRemoved)
		if w.Chance(0.5) {
			continue // it is not switched off, and must find out by itself
		}
		w.After(w.Between(0, 10*w.set.Election), func() {
			if m.gone {
				return
			}
			if !w.recoverable(w.except(m)) {
				m.retiring = false // not yet
				return
			}
			w.Tracef("FAULT %s is switched off: it was removed", m.id)
			m.crash()
			m.gone = true
		})
	}
}
