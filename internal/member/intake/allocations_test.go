package intake

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol"
)

// A proposal allocates nothing: what is allocated is of its batch.
func TestAllocationsOfABatch(t *testing.T) {
	const commands = 256
	now, done, command := func() time.Duration { return 0 }, Done(func(any, error) {}), make([]byte, 16)
	p := Proposals{MaxBatch: 1 << 20, MaxCount: commands, MaxBytes: 1 << 40}
	got := testsize.Allocations(t, 100, func() {
		for range commands {
			if _, err := p.Add(now, command, done); err != nil {
				t.Fatal(err)
			}
		}
		b := p.Take()
		b.Seal(protocol.Session{Member: 1, Incarnation: 1}, 1, 1)
		p.Settled(0, b)
	})
	require.LessOrEqual(t, got, 5.0)
}
