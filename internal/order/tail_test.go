package order

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// plainTail computes the results of a Tail from the whole log each time.
type plainTail struct {
	base      protocol.Base
	log       []protocol.Entry // after base
	committed protocol.Index
	want      Slot
}

func (p *plainTail) append(instance protocol.InstanceID, e protocol.Entry) {
	p.log = append(p.log[:e.Index-p.base.Index-1], e)
	round, _, _ := p.read()
	var want Slot
	switch e.Kind {
	case protocol.EntryBatch:
		want = Slot{round, instance}
	case protocol.EntryConfig:
		want = Slot{round + 1, instance}
	case protocol.EntryReshape:
		want = Slot{round + 1, 0}
	}
	if want.Compare(p.want) > 0 {
		p.want = want
	}
}

func (p *plainTail) read() (round protocol.Round, busy, skipping bool) {
	round = p.base.Round
	for i := range p.log {
		e := &p.log[i]
		switch e.Kind {
		case protocol.EntryBatch, protocol.EntryReshape:
			round++
			busy = busy || e.Index > p.committed
		case protocol.EntrySkip:
			round = max(round, e.Round())
			skipping = skipping || e.Index > p.committed
		}
	}
	return round, busy, skipping
}

func TestTailSaysWhatTheLogFills(t *testing.T) {
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 5))
		base := protocol.Base{Index: protocol.Index(rng.IntN(5)), Round: protocol.Round(rng.IntN(9))}
		p := &plainTail{base: base, committed: base.Index}
		tail := NewTail(2, &base, false)
		for range 150 {
			end := p.base.Index + protocol.Index(len(p.log))
			require.Equal(t, end, tail.End())
			switch k := rng.IntN(20); {
			case k < 14: // in place of entries that may still be replaced
				e := randomEntry(rng, 0, new(p.base.Round))
				e.Index = max(p.committed+1, end+1-min(end, protocol.Index(rng.IntN(4)*rng.IntN(2))))
				p.append(2, e)
				tail.Append(&e)
			case k < 19:
				p.committed = max(p.committed, end-min(end, protocol.Index(rng.IntN(6))))
				tail.Committed(p.committed)
				tail.Committed(p.committed / 2) // a late report
			default:
				p.base = protocol.Base{Index: end + protocol.Index(rng.IntN(3)), Round: tail.Round() + protocol.Round(rng.IntN(5))}
				p.log, p.committed = nil, p.base.Index
				tail.Reset(&p.base)
			}
			round, busy, skipping := p.read()
			require.NoError(t, tail.Check())
			require.Equal(t, round, tail.Round())
			require.Equal(t, busy, tail.Busy())
			require.Equal(t, skipping, tail.Skipping())
			require.Equal(t, p.want, tail.Want())
		}
	}
}

func TestTailRefusesWhatCannotBe(t *testing.T) {
	tail := NewTail(1, &protocol.Base{Index: 3}, false)
	require.Panics(t, func() { tail.Append(&protocol.Entry{Index: 3}) })
	require.Panics(t, func() { tail.Append(&protocol.Entry{Index: 5}) })
}
