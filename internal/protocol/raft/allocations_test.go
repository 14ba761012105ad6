package raft

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol"
)

// A leader of three members allocates nothing for an entry, only for the messages, records and growing lists of its
// batch. A batch of one entry makes ten allocations, two of them in the test.
func TestAllocationsOfALeadersBatch(t *testing.T) {
	for n, most := range map[int]float64{1: 10, 16: 13, 256: 19} {
		r, out := benchLeader(t)
		entries, now := benchEntries(n, 16), time.Duration(0)
		require.LessOrEqual(t, testsize.Allocations(t, 64, func() {
			now += time.Microsecond
			replicate(r, out, now, entries)
			compact(r, out, now)
		}), most, "%d entries", n)
		require.Equal(t, r.log.Last, r.commit)
	}
}

// Nor does it on a follower. Two are the test's.
func TestAllocationsOfAFollowersBatch(t *testing.T) {
	for n, most := range map[int]float64{1: 5, 256: 11} {
		r, out := benchCore(t, 2, 3), &protocol.Effects{}
		entries, heads := benchEntries(n, 16), make([]byte, n*protocol.HeadSize)
		require.LessOrEqual(t, testsize.Allocations(t, 64, func() {
			follow(r, out, entries, heads)
			compact(r, out, 0)
		}), most, "%d entries", n)
		require.Greater(t, r.commit, protocol.Index(64*n))
	}
}
