package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/node"
)

// demandMerging lets members write while all is well, or just after a leader has stopped. It
// demands that members soon apply what is decided. While an instance still follows a membership
// change, its quorum may wait for a member that must catch up, so then it demands nothing.
func demandMerging(w *World, alive []*node.Member) {
	if !w.set.Woven() || w.Broken != nil || slices.ContainsFunc(serving(w, alive), func(m *node.Member) bool { return !m.Settled() }) {
		return
	}
	w.merging = w.set.mergeTime()
	for _, m := range w.Members {
		m.Own.InboxBytes = 0 // what a full inbox refuses is lost, as on a link
	}
	var behind time.Duration // for what a leader that crashes has not sent: its successor has to
	if victim := w.someLeader(); victim != nil && w.Chance(0.5) && w.decisive(slices.DeleteFunc(slices.Clone(alive), func(m *node.Member) bool { return m == victim })) {
		w.Tracef("FAULT %s loses power while the others write", victim.ID)
		w.merging += 4 * w.set.Election
		behind = time.Duration(unsent(w)) * w.set.pieceTime()
		victim.Crash()
	}
	for i, m := range serving(w, alive) {
		c := w.clients.Client(w.set.Clients+int(m.ID), m.ID)
		w.After(time.Duration(i)*w.set.Heartbeat, func() {
			if m.Up {
				op := &history.Operation{Operation: check.Operation{Client: c.Number, Kind: check.Append, Key: "k0", Value: fmt.Sprintf("%d,", len(w.History.Ops))}}
				c.Perform(m, op, w.set.GiveUp, func() {})
			}
		})
	}
	end := w.Now() + 2*w.merging + time.Duration(len(alive))*w.set.Heartbeat
	w.merging += behind
	w.Run(end)
	w.merging = 0
	for _, m := range alive {
		w.startMember(m)
	}
	demandProgress(w, alive, false)
}
