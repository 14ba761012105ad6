package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol"
)

// Entries cost no allocation in any order, once the queues have their size: alone, merged, and in groups.
func TestOrdersDoNotAllocate(t *testing.T) {
	for name, from := range map[string]Cursor{
		"alone": Begin(1, false), "merged": Begin(4, true), "groups": BeginKeyed(4),
	} {
		o, instances := New(from), protocol.InstanceID(len(from.Points))
		entries, out := make([]protocol.Entry, 1), make([]Placed, 0, 2*instances)
		index := protocol.Index(0)
		round := func() {
			index++
			for i := range instances {
				entries[0] = batch(index, 1)
				o.Add(instances-i, entries)
			}
			out = o.Next(out[:0])
		}
		round()
		require.Zero(t, testsize.Allocations(t, 100, round), name)
		require.Len(t, out, int(instances), name)
	}
}
