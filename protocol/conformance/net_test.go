package conformance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// clock is a core that wants to be woken every two milliseconds, and keeps a cell for each time.
type clock struct {
	protocol.Core
	seq   uint64
	woken []time.Duration
}

func (c *clock) Check() error            { return nil }
func (c *clock) Status() protocol.Status { return protocol.Status{First: 1} }

func (c *clock) Step(now time.Duration, in protocol.Input, out *protocol.Effects) {
	if _, ok := in.(protocol.Wake); ok {
		c.woken = append(c.woken, now)
		c.seq++
		out.Seq = c.seq
		n := uint64(len(c.woken))
		out.Persist = append(out.Persist,
			protocol.Record{Kind: protocol.RecordCell, Cell: protocol.Cell{Number: 100 - n, Data: []byte{byte(n)}}},
			protocol.Record{Kind: protocol.RecordDrop, Cell: protocol.Cell{Number: 99}})
	}
	if len(c.woken) < 4 {
		out.WakeAt = now + 2*time.Millisecond
	}
}

func TestNetKeepsCellsAndWakes(t *testing.T) {
	var core *clock
	var found []protocol.Cell
	net := NewNet(t, 1, 1, &protocol.Codec{}, func(_ protocol.Session, rec protocol.Recovered) (protocol.Core, error) {
		core, found = &clock{}, rec.Cells
		return core, nil
	})
	net.Tick(1, time.Millisecond)
	require.Empty(t, core.woken)
	net.Tick(1, 5*time.Millisecond) // the tick itself puts the wish off
	require.Equal(t, []time.Duration{3 * time.Millisecond, 5 * time.Millisecond}, core.woken)
	net.SyncOne(1)
	net.Tick(1, time.Second)
	require.Len(t, core.woken, 4)
	net.Crash(1, 2)
	net.Restart(1)
	require.Equal(t, []protocol.Cell{{Number: 97, Data: []byte{3}}, {Number: 98, Data: []byte{2}}}, found,
		"in order, and one was not durable")
}
