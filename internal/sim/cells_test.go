package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// celled wraps a core. It also keeps cells and asks to be woken, more often than it is ticked. Each time it is woken
// it writes a cell, and sometimes it empties one, together with the next records of the wrapped core.
type celled struct {
	protocol.Core
	counts *cellCounts
	every  time.Duration
	wakeAt time.Duration
	due    bool
}

type cellCounts struct{ woken, written, found uint64 }

func (c *celled) Step(now time.Duration, in protocol.Input, out *protocol.Effects) {
	seq := out.Seq
	if _, ok := in.(protocol.Wake); ok {
		if c.wakeAt == 0 || now < c.wakeAt {
			panic(fmt.Sprintf("woken at %s, and not at %s", now, c.wakeAt))
		}
		c.due, c.wakeAt = true, 0
		c.counts.woken++
	} else {
		c.Core.Step(now, in, out)
	}
	if c.due && out.Seq > seq {
		c.due = false
		c.counts.written++
		n := c.counts.written
		out.Persist = append(out.Persist, protocol.Record{Kind: protocol.RecordCell, Cell: protocol.Cell{Number: n % 7, Data: make([]byte, n*31%500)}})
		if n%3 == 0 {
			out.Persist = append(out.Persist, protocol.Record{Kind: protocol.RecordDrop, Cell: protocol.Cell{Number: n % 5}})
		}
	}
	if c.wakeAt == 0 {
		c.wakeAt = now + c.every
	}
	out.WakeAt = c.wakeAt
}

// Members keep cells through all faults, and are never woken too early. The judge of disks checks the cells too.
func TestCellsAndWakes(t *testing.T) {
	testsize.Long(t)
	for _, c := range []fault.Options{{Protocol: "raft", Nodes: 3}, {Protocol: "niagara", Nodes: 3}} {
		c.Without = []string{"fit"} // it might turn on lanes, which these cores do not have
		var counts cellCounts
		for c.Seed = 1; c.Seed <= 12; c.Seed++ {
			w := open(c)
			celling(w, &counts)
			beginRun(w)
			w.Run(w.Set.Chaos)
			secondPhase(w)
			require.Nil(t, resultOf(w).Violation, "seed %d of %s", c.Seed, c.Protocol)
		}
		t.Logf("%+v", counts)
		require.Greater(t, counts.woken, uint64(10_000))
		require.Greater(t, counts.written, uint64(500))
		require.Greater(t, counts.found, uint64(100))
	}
}

// celling wraps the cores of a world to keep cells.
func celling(w *fault.World, counts *cellCounts) {
	p, core := *w.Set.Protocol, *w.Set.Protocol.Core
	p.Core, core.Cells, core.Settings = &core, &protocol.CellUse{}, setting.Table{} // no lanes, which are in cells
	inner := w.Set.Protocol.Core.New
	core.New = func(s protocol.Settings, rec protocol.Recovered) (protocol.Core, error) {
		counts.found += uint64(len(rec.Cells))
		rec.Cells = nil
		c, err := inner(s, rec)
		return &celled{Core: c, counts: counts, every: s.Heartbeat / 7}, err
	}
	w.Set.Protocol, w.Set.Noted = &p, true
	for _, m := range w.Members {
		m.Own.Protocol = &p
	}
}
