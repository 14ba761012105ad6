package braid_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/internal/vfs"
)

// A command that comes alone is a batch, an entry, a record and a write of its own: the most that it can cost on one
// member. internal/sim/scale counts what several members do for a command, with each protocol.
func TestAllocationsOfAProposal(t *testing.T) {
	c := newCluster(t, 1, func(o *braid.Options) { o.FS = vfs.NewMem() })
	c.leader()
	n := c.any()
	command := make([]byte, 16)
	got := testsize.Allocations(t, 200, func() {
		if _, err := n.Propose(t.Context(), command); err != nil {
			t.Fatal(err)
		}
	})
	require.LessOrEqual(t, got, 15.0)
}

// A read barrier that comes alone.
func TestAllocationsOfARead(t *testing.T) {
	c := newCluster(t, 1, func(o *braid.Options) { o.FS = vfs.NewMem() })
	c.leader()
	n := c.any()
	got := testsize.Allocations(t, 200, func() {
		if err := n.ReadBarrier(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	require.LessOrEqual(t, got, 3.0)
}
