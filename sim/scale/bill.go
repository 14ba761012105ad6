package scale

import (
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
)

// billed is an instance's core that counts what its steps cost.
type billed struct {
	protocol.Core
	l *loop
}

// Step implements protocol.Core.
func (b *billed) Step(now time.Duration, in protocol.Input, eff *protocol.Effects) {
	w, cost, before := b.l.m.w, &b.l.cost, len(eff.Commit)
	c := &w.costs
	b.Core.Step(now, in, eff)
	commits := len(eff.Commit) - before
	switch in := in.(type) {
	case *protocol.Message:
		if protocolCore.Codec.Of(in.Type).Brings == protocol.BringsLog {
			cost.on(c.Append, len(in.Entries), 0)
		} else {
			cost.on(c.Ack, commits, 0)
		}
	case protocol.Persisted:
		cost.on(c.Durable, commits, 0)
	case protocol.Tick:
		cost.on(c.Tick, 0, 0)
	case protocol.Propose:
		for i := range in.Entries {
			cost.on(c.Propose, 0, int(in.Entries[i].Size))
			if in.Entries[i].Kind == protocol.EntrySkip {
				w.tally.skips += w.one()
			} else {
				w.tally.batches += w.one()
			}
		}
	}
}

// measure has a turn for each thing that happened, and measures how long the instance takes to take
// it in.
func (l *loop) measure() {
	m, written := l.m.w.meter, l.durable > l.told
	t := l.takeAll()
	if written {
		l.measured(m, meterDurable, member.Happened{Durable: t.Durable})
	}
	for i := range t.Inputs {
		kind := meterAck
		if msg, ok := t.Inputs[i].(*protocol.Message); ok && protocolCore.Codec.Of(msg.Type).Brings == protocol.BringsLog {
			kind = meterAppend
		}
		l.measured(m, kind, member.Happened{Durable: t.Durable, Inputs: t.Inputs[i : i+1]})
	}
	if t.Tick {
		l.measured(m, meterTick, member.Happened{Durable: t.Durable, Tick: true, Random: t.Random})
	}
	l.hosted.Take(member.Happened{Durable: t.Durable, Jobs: t.Jobs})
	l.end()
}

func (l *loop) measured(m *meter, kind meterKind, t member.Happened) {
	l.committed = 0
	began := time.Now()
	l.hosted.Take(t)
	took := float64(time.Since(began))
	l.end()
	n := 0
	switch kind {
	case meterAppend:
		n = len(t.Inputs[0].(*protocol.Message).Entries)
	case meterAck, meterDurable:
		n = l.committed
	}
	m.add(kind, n, took-m.take)
}
