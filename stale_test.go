package braid_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// TestStaleReads: a read may see an older state than others do, no older than it allows, and then needs no leader.
func TestStaleReads(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	n := c.nodes[2]
	_, err := c.nodes[1].Propose(c.ctx(), []byte("first"))
	require.NoError(t, err)
	require.NoError(t, n.Read(c.ctx(), braid.ReadOptions{Stale: time.Hour}))
	require.Equal(t, 1, c.counts[2].count("first"), "the first one is confirmed: nothing is known yet")

	_, err = c.nodes[1].Propose(c.ctx(), []byte("second"))
	require.NoError(t, err)
	require.NoError(t, n.Read(c.ctx(), braid.ReadOptions{Stale: time.Nanosecond}))
	require.Equal(t, 1, c.counts[2].count("second"), "what was acknowledged earlier must be there")

	require.NoError(t, c.nodes[1].Close())
	require.NoError(t, c.nodes[3].Close())
	brief := 100 * time.Millisecond
	require.NoError(t, n.Read(c.ctx(), braid.ReadOptions{Stale: time.Hour, Timeout: brief}))
	require.ErrorIs(t, n.Read(c.ctx(), braid.ReadOptions{Stale: time.Nanosecond, Timeout: brief}), braid.ErrReadTimeout)
	require.ErrorIs(t, n.Read(c.ctx(), braid.ReadOptions{Timeout: brief}), braid.ErrReadTimeout)
	require.ErrorIs(t, n.Read(c.ctx(), braid.ReadOptions{Stale: time.Hour, Barrier: true, Timeout: brief}), braid.ErrReadTimeout,
		"no read saw all that was accepted")
	require.NoError(t, n.Close())
	require.ErrorIs(t, n.Read(c.ctx(), braid.ReadOptions{Stale: time.Hour}), braid.ErrStopped)
}
