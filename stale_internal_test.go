package braid

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFreshness: a read says how fresh the state was when it began, however late it ended.
func TestFreshness(t *testing.T) {
	var f freshness
	at := func(s int) time.Duration { return time.Duration(s) * time.Second }
	covers := func(now, stale int, barrier bool) bool {
		return f.covers(at(now), time.Duration(stale)*time.Second, barrier)
	}
	require.False(t, covers(10, 100, false))
	f.confirm(at(20), false)
	f.confirm(at(15), false) // began earlier, and ended later
	require.True(t, covers(30, 10, false))
	require.False(t, covers(30, 9, false))
	require.False(t, covers(30, 10, true))
	f.confirm(at(25), true)
	require.True(t, covers(30, 5, true))
	require.True(t, covers(30, 5, false), "a barrier covers what a plain read covers")
}
