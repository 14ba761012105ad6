package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/check"
	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
)

// How soon what is decided is executed everywhere (docs/niagara.md, N7).

// mergeTime is how long it takes at most until all members that are up have applied a decided slot,
// while every instance has a leader. In that time the other instances skip, and the news spreads
// that all is committed. A leader that hands over to a member that has just stopped takes nothing
// for an election timeout.
func (s *Settings) mergeTime() time.Duration {
	return s.Election + 3*s.Heartbeat + 2*s.Tick + 8*(s.DelayMax+s.SyncMax) + 24*s.HopMax
}

// stands notes that a member stands for election. A term in which nobody led was in vain.
func (c *witness) stands() {
	j := c.s.judges
	if c.status.Role != protocol.Candidate || c.status.Term <= j.stood {
		return
	}
	if j.stood > j.won {
		c.m.w.vain++
	}
	j.stood = c.status.Term
}

// judgeMerging judges that all members soon apply an entry that was just decided (N7). Elections
// collide by chance. Each one in vain takes a timeout more, which is at most twice the setting.
func (w *World) judgeMerging(instance protocol.InstanceID, index protocol.Index) {
	if w.merging == 0 {
		return
	}
	w.judgeMerged(instance, index, w.now, w.merging, w.vain)
}

// judgeMerged judges an entry that was decided at an instant, a while after that, or later if
// there were elections in vain: vain says how many there had been by then.
func (w *World) judgeMerged(instance protocol.InstanceID, index protocol.Index, decided, limit time.Duration, vain int) {
	w.after(decided+limit-w.now, func() {
		if more := time.Duration(w.vain-vain) * 2 * w.set.Election; more > 0 {
			w.judgeMerged(instance, index, decided, limit+more, w.vain)
			return
		}
		for _, m := range w.serving(w.members) {
			if m.up && !m.sick() && w.merging > 0 && m.among(m.inForce, instance) != nil && pointOf(m.applier, instance) < index {
				w.violate(m.id, fmt.Errorf("N7: entry %d of instance %d was decided %s ago and is not executed: %s", index, instance, limit, m.gap()))
			}
		}
	})
}

func pointOf(a *member.Applier, instance protocol.InstanceID) protocol.Index {
	at := a.Cursor()
	return at.Point(instance).Index
}

// demandMerging lets members write while all is well, or just after a leader has stopped. It
// demands that members soon apply what is decided. While an instance still follows a membership
// change, its quorum may wait for a member that must catch up, so then it demands nothing.
func (w *World) demandMerging(alive []*Member) {
	if !w.set.woven() || w.broken != nil || slices.ContainsFunc(w.serving(alive), func(m *Member) bool { return !m.settled() }) {
		return
	}
	w.merging = w.set.mergeTime()
	for _, m := range w.members {
		m.own.InboxBytes = 0 // what a full inbox refuses is lost, as on a link
	}
	if victim := w.someLeader(); victim != nil && w.chance(0.5) && w.decisive(slices.DeleteFunc(slices.Clone(alive), func(m *Member) bool { return m == victim })) {
		w.tracef("FAULT %s loses power while the others write", victim.id)
		w.merging += 4 * w.set.Election
		victim.crash()
	}
	for i, m := range w.serving(alive) {
		c := &client{w: w, number: w.set.Clients + int(m.id), home: m.id}
		w.after(time.Duration(i)*w.set.Heartbeat, func() {
			if m.up {
				op := &operation{Operation: check.Operation{Client: c.number, Kind: check.Append, Key: "k0", Value: fmt.Sprintf("%d,", len(w.ops))}}
				c.perform(m, op, w.set.GiveUp, func() {})
			}
		})
	}
	w.run(w.now + 2*w.merging + time.Duration(len(alive))*w.set.Heartbeat)
	w.merging = 0
	for _, m := range alive {
		w.startMember(m)
	}
	w.demandProgress(alive, false)
}
