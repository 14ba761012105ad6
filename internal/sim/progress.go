package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/sim/client"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// demandProgress gives the living members a bounded time. In it each of them must complete a write
// (if asked for) and a read, and reach the same state.
func demandProgress(w *World, alive []*node.Member, writes bool) {
	probes := make(map[*node.Member]*probe)
	for _, m := range alive {
		p := &probe{Client: w.clients.Client(w.set.Clients+int(m.ID), m.ID), w: w, m: m}
		probes[m] = p
		if writes {
			w.After(0, p.write)
		} else {
			w.After(0, p.read)
		}
	}
	limit := w.Now() + settleTime(w)
	done := w.RunUntil(limit, func() bool {
		for _, m := range serving(w, alive) {
			if !probes[m].done || m.Behind() || m.Lacks() {
				return false
			}
		}
		return len(serving(w, alive)) > 0 && !waitsToVote(w, alive) && w.History.JudgeTold() == nil // what was just accepted is still to take effect
	})
	if !done && w.Broken == nil {
		w.Violate(0, fmt.Errorf("no progress %s after the last fault:%s", settleTime(w), describeMembers(w, alive)))
	}
}

// settleTime is how long recovery may take: some elections, and the time to send, write and apply
// the whole log again in the smallest pieces.
func settleTime(w *World) time.Duration {
	s := &w.set
	piece := s.pieceTime()
	timeout := 80*s.Election + 100*piece + epochTime(w, piece)
	if s.ByKey() {
		timeout += time.Duration(len(w.History.Ops)) * piece // each may have left an undecided command, which is recovered by itself
	}
	for _, c := range w.Court.All {
		timeout += time.Duration(c.Ledger.Decided()) * piece
		if s.Bodies.Share > 0 {
			timeout += time.Duration(len(c.Bodies.Live())+20) * s.GatherTime()
		}
		if s.Bodies.Share > 0 && s.Bodies.GatherBytes <= int64(s.Bodies.Max) {
			// One body is gathered at a time. A member that comes back with an old snapshot looks for
			// bodies that no member has any more, and gives up on each before the next.
			timeout += time.Duration(c.Ledger.Decided()) * s.BodyTimeout()
		}
	}
	return timeout
}

// serving returns the living members that must make progress: those in the last configuration that
// any of them has applied.
func serving(w *World, alive []*node.Member) []*node.Member {
	var last *node.Member
	for _, m := range alive {
		if m.Up && (last == nil || m.Reached() > last.Reached()) {
			last = m
		}
	}
	if last == nil {
		return nil
	}
	configs := last.Applier.Configs()
	if configs[0].Joint() || !last.Settled() && !lacksMember(w, &configs[0]) && !slices.ContainsFunc(alive, (*node.Member).Owes) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(alive), func(m *node.Member) bool {
		return slices.ContainsFunc(configs, func(c protocol.Config) bool { return c.Find(m.ID) == nil })
	})
}

// waitsToVote reports whether a member that was added as a voter runs and is not a voter yet,
// although nothing prevents it.
func waitsToVote(w *World, alive []*node.Member) bool {
	for _, m := range serving(w, alive) {
		for _, c := range m.Applier.Configs() {
			if slices.ContainsFunc(c.Members, func(x protocol.Member) bool { return x.Joining && w.Member(x.ID).Up && !w.Member(x.ID).Owes() }) {
				return true
			}
		}
	}
	return false
}

// lacksMember reports whether some member of a configuration is down. Instances may wait for it
// before they follow the membership of the first.
func lacksMember(w *World, c *protocol.Config) bool {
	return slices.ContainsFunc(c.Members, func(m protocol.Member) bool { return !w.Member(m.ID).Up })
}

func describeMembers(w *World, members []*node.Member) string {
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

// probe is a client that repeats one write and then one read, at one member, until they succeed. It
// asks less and less often, so that it does not become the load that it waits for.
type probe struct {
	client.Client
	w     *World
	m     *node.Member
	tries int
	done  bool
}

func (p *probe) write() { p.try(check.Append, 0, p.read) }

// read reads one key, or all keys where values are kept outside the log.
func (p *probe) read() {
	keys := 1
	if p.w.set.Bodies.Share > 0 {
		keys = p.w.set.Keys
	}
	p.readFrom(0, keys)
}

func (p *probe) readFrom(key, keys int) {
	if key == keys {
		p.done = true
		return
	}
	p.try(check.Get, key, func() { p.readFrom(key+1, keys) })
}

func (p *probe) try(kind check.Kind, key int, then func()) {
	w := p.w
	if !p.m.Up {
		w.After(w.set.Heartbeat, func() { p.try(kind, key, then) })
		return
	}
	op := &history.Operation{Operation: check.Operation{Client: p.Number, Kind: kind, Key: machine.KeyName(key)}}
	if kind == check.Append {
		op.Value = fmt.Sprintf("%d,", len(w.History.Ops))
		if w.set.Bodies.Share > 0 && w.Chance(0.5) {
			op.Carry(len(w.History.Ops), w.clients.DrawBody())
		}
	}
	timeout := w.set.GiveUp + 10*w.set.Election
	if bodies := p.m.Machines.First.Bodies(); bodies > 0 {
		timeout += time.Duration(bodies) * w.set.GatherTime()
	}
	p.Perform(p.m, op, timeout, func() {
		if w.History.Succeeded(op) {
			then()
			return
		}
		p.tries++
		w.After(w.set.Heartbeat<<min(p.tries, 8), func() { p.try(kind, key, then) })
	})
}
