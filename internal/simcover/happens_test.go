package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/sim/count"
)

// often returns what happens when each counter counts n times in each kind of cluster.
func often(n int) happened {
	all := happened{}
	for _, c := range campaigns {
		for _, k := range count.All() {
			all.add(c.cluster, map[string]int{k.Name: n})
		}
	}
	return all
}

func TestWhatNeverHappensIsReported(t *testing.T) {
	require.NoError(t, often(1000).verdict())
	require.Error(t, often(1).verdict())
	h := often(1000)
	h.add("--protocol raft --nodes 3", map[string]int{"crashes": -990})
	require.EqualError(t, h.verdict(), "--protocol raft --nodes 3: only 10 crashes in 1600 seeds, and not more than 15")
	h.add("--protocol raft --nodes 3", map[string]int{"crashes": 10})
	require.NoError(t, h.verdict(), "the seeds that count statements and the others count together")
}

func TestWhatIsSeldomExists(t *testing.T) {
	known := map[string]bool{}
	for _, c := range campaigns {
		for _, k := range count.All() {
			known[c.cluster+": "+k.Name] = true
		}
	}
	for name := range seldom {
		require.True(t, known[name], name)
	}
}
