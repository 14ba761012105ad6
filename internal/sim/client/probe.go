package client

import (
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/internal/sim/node"
)

// Probe is a client that repeats one write and then one read, at one member, until they succeed. It backs off, so
// that it is not itself the load for whose end it waits.
type Probe struct {
	Client
	Member *node.Member
	tries  int
	Done   bool
}

// Write writes, and then reads.
func (p *Probe) Write() { p.Try(check.Append, 0, p.Read) }

// Read reads one key, or all keys where values are kept outside the log.
func (p *Probe) Read() {
	keys := 1
	if p.w.Set.Bodies.Share > 0 {
		keys = p.w.own.Keys
	}
	p.readFrom(0, keys)
}

func (p *Probe) readFrom(key, keys int) {
	if key == keys {
		p.Done = true
		return
	}
	p.Try(check.Get, key, func() { p.readFrom(key+1, keys) })
}

// Try repeats an operation on a key until it succeeds, and then calls then.
func (p *Probe) Try(kind check.Kind, key int, then func()) {
	w := p.w
	if !p.Member.Up {
		w.After(w.Set.Heartbeat, func() { p.Try(kind, key, then) })
		return
	}
	op := p.Operation(kind, machine.KeyName(key))
	if kind == check.Append && w.Set.Bodies.Share > 0 && w.Chance(0.5) {
		op.Carry(len(w.History.Ops), w.DrawBody())
	}
	timeout := w.Set.GiveUp + 10*w.Set.Election
	if bodies := p.Member.Machines.First.Bodies(); bodies > 0 {
		timeout += time.Duration(bodies) * w.Set.GatherTime()
	}
	p.Perform(p.Member, op, timeout, func() {
		if w.History.Succeeded(op) {
			then()
			return
		}
		p.tries++
		w.After(w.Set.Heartbeat<<min(p.tries, 8), func() { p.Try(kind, key, then) })
	})
}

// Probe returns a client that asks one member.
func (w *Clients) Probe(number int, m *node.Member) *Probe {
	return &Probe{Client: w.Client(number, m.ID), Member: m}
}
