package scale

import (
	"time"

	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/protocol"
)

// billed is an instance's core that counts the costs of its steps.
type billed struct {
	protocol.Core
	l *loop
}

// Step implements protocol.Core.
func (b *billed) Step(now time.Duration, in protocol.Input, eff *protocol.Effects) {
	w, cost, before := b.l.m.w, &b.l.cost, len(eff.Commit)
	c := &w.steps
	if _, wakes := in.(protocol.Wake); wakes && w.meter != nil {
		w.meter.wake(func() int { b.Core.Step(now, in, eff); return len(eff.Commit) - before })
	} else {
		b.Core.Step(now, in, eff)
	}
	commits := len(eff.Commit) - before
	switch in := in.(type) {
	case *protocol.Message:
		cost.on(c.message(in.Type), len(in.Entries)+commits, 0)
	case protocol.Persisted:
		cost.on(c.Durable, commits, 0)
	case protocol.Tick:
		cost.on(c.Tick, commits, 0)
	case protocol.Wake:
		cost.on(c.Wake, commits, 0)
	case protocol.Propose:
		for i := range in.Entries {
			cost.on(c.Propose, commits, 0)
			cost.on(w.costs.Digest, 0, int(in.Entries[i].Size))
			if in.Entries[i].Kind == protocol.EntrySkip {
				w.tally.skips += w.one()
			} else {
				w.tally.batches += w.one()
			}
		}
	}
}

// measure runs a turn for each input, and measures how long the instance takes to process it.
func (l *loop) measure() {
	m, written := l.m.w.meter, l.durable > l.told
	t := l.takeAll()
	if written {
		l.measured(m, meterDurable, 0, instance.Happened{Durable: t.Durable})
	}
	for i := range t.Inputs {
		kind, n := meterOther, 0
		if msg, ok := t.Inputs[i].(*protocol.Message); ok && msg.Type >= protocol.FirstOwnType {
			kind, n = kindOf(msg.Type), len(msg.Entries)
		}
		l.measured(m, kind, n, instance.Happened{Durable: t.Durable, Inputs: t.Inputs[i : i+1]})
	}
	if t.Tick {
		l.measured(m, meterTick, 0, instance.Happened{Durable: t.Durable, Tick: true, Random: t.Random})
	}
	l.hosted.Take(l.look(&instance.Happened{Durable: t.Durable, Jobs: t.Jobs}))
	l.end()
}

// measured measures a turn, except for the parts that are measured separately. brings is the number of entries that
// it processes.
func (l *loop) measured(m *meter, kind meterKind, brings int, t instance.Happened) {
	l.committed, m.inner = 0, 0
	began := worked()
	l.hosted.Take(l.look(&t))
	l.end()
	m.add(kind, brings+l.committed, m.since(began)-m.inner-m.turn)
}
