package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/sim/client"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// demandProgress gives the members that are up a bounded time. In it each of them must complete a write (if
// requested) and a read, and reach the same state.
func demandProgress(w *fault.World, alive []*node.Member, writes bool) {
	probes := make(map[*node.Member]*client.Probe)
	for _, m := range alive {
		p := w.Clients.Probe(w.Set.Clients+int(m.ID), m)
		probes[m] = p
		if writes {
			w.After(0, p.Write)
		} else {
			w.After(0, p.Read)
		}
	}
	limit := w.Now() + settleTime(w)
	done := w.RunUntil(limit, func() bool {
		for _, m := range fault.Serving(w, alive) {
			if !probes[m].Done || m.Behind() || m.Lacks() {
				return false
			}
		}
		// The last accepted writes are still to take effect.
		return len(fault.Serving(w, alive)) > 0 && !waitsToVote(w, alive) && w.History.JudgeTold() == nil
	})
	if !done && w.Broken == nil {
		w.Violate(0, fmt.Errorf("no progress %s after the last fault:%s", settleTime(w), describeMembers(w, alive)))
	}
}

// settleTime returns the maximal time of a recovery: some elections, and the time to send, write and apply the whole
// log again in the smallest pieces.
func settleTime(w *fault.World) time.Duration {
	s := &w.Set
	piece := s.PieceTime()
	timeout := 80*s.Election + 100*piece + fault.EpochTime(w, piece)
	if s.ByKey() {
		// Each operation may have left an undecided command, which is recovered separately.
		timeout += time.Duration(len(w.History.Ops)) * piece
	}
	for _, c := range w.Court.All {
		timeout += time.Duration(c.Ledger.Decided()) * piece
		if s.Bodies.Share > 0 {
			timeout += time.Duration(len(c.Bodies.Live())+20) * s.GatherTime()
		}
		if s.Bodies.Share > 0 && s.Bodies.GatherBytes <= int64(s.Bodies.Max) {
			// One body is gathered at a time. A member that comes back with an old snapshot requests bodies that no member has
			// any more, and gives up on each before the next.
			timeout += time.Duration(c.Ledger.Decided()) * s.BodyTimeout()
		}
	}
	return timeout
}

// waitsToVote reports whether a running member that was added as a voter is not a voter yet, although nothing
// prevents it.
func waitsToVote(w *fault.World, alive []*node.Member) bool {
	for _, m := range fault.Serving(w, alive) {
		for _, c := range m.Applier.Configs() {
			if slices.ContainsFunc(c.Members, func(x protocol.Member) bool {
				o := w.Member(x.ID)
				return x.Joining && o.Up && !o.Owes() && w.MayPromote(alive, &c, x.ID)
			}) {
				return true
			}
		}
	}
	return false
}

func describeMembers(w *fault.World, members []*node.Member) string {
	text := ""
	for _, m := range members {
		if !m.Up {
			text += fmt.Sprintf("\n  %s is down", m.ID)
			continue
		}
		at := m.Applier.Cursor()
		for _, s := range m.InForce {
			st := s.Inst.Core().Status()
			text += fmt.Sprintf("\n  %s%s: %s of term %d, leader %s, log %d…%d, durable %d, commit %d, applied %d; members %v outgoing %v",
				m.ID, w.Named(s.Instance), st.Role, st.Term, st.Leader, st.First, st.Last, st.Durable, st.Commit,
				at.Point(s.Instance).Index, st.Config.All(), st.Config.Outgoing)
		}
		text += fmt.Sprintf("\n    lacks bodies: %t, instances follow: %t %s", m.Lacks(), m.Settled(), m.Gap())
	}
	return text
}
