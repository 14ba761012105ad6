package sim

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/node"
)

// demandMerging lets members write without faults, or just after a leader has stopped. It demands that members soon
// apply decided entries. While an instance still follows a membership change, its quorum may wait for a member that
// must catch up, so then it demands nothing.
func demandMerging(w *fault.World, alive []*node.Member) {
	if !w.Set.Merged() || w.Broken != nil || slices.ContainsFunc(fault.Serving(w, alive), func(m *node.Member) bool { return !m.Settled() }) {
		return
	}
	w.Merging = w.Set.MergeTime()
	for _, m := range w.Members {
		m.Own.InboxBytes = 0 // a message that a full inbox refuses is lost, as on a link
	}
	var behind time.Duration // for messages that a crashed leader has not sent: its successor has to
	if victim := w.SomeLeader(); victim != nil && w.Chance(0.5) && w.Decisive(slices.DeleteFunc(slices.Clone(alive), func(m *node.Member) bool { return m == victim })) {
		w.Tracef("FAULT %s loses power while the others write", victim.ID)
		w.Merging += 4 * w.Set.Election
		behind = time.Duration(fault.Unsent(w)) * w.Set.PieceTime()
		victim.Crash()
	}
	for i, m := range fault.Serving(w, alive) {
		c := w.Clients.Client(w.Set.Clients+int(m.ID), m.ID)
		w.After(time.Duration(i)*w.Set.Heartbeat, func() {
			if m.Up {
				c.Perform(m, c.Operation(check.Append, "k0"), w.Set.GiveUp, func() {})
			}
		})
	}
	end := w.Now() + 2*w.Merging + time.Duration(len(alive))*w.Set.Heartbeat
	w.Merging += behind
	w.Run(end)
	w.Merging = 0
	for _, m := range alive {
		w.StartMember(m)
	}
	demandProgress(w, alive, false)
}
