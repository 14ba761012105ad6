package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGrowth(t *testing.T) {
	require.Equal(t, 400, growth(400, 0, 0))
	require.Equal(t, 400, growth(400, maxGarbage/4, 0))
	require.Equal(t, 200, growth(400, maxGarbage/2, 0))
	require.Equal(t, 125, growth(400, maxGarbage/32*25, 0), "steps are coarse")
	require.Equal(t, 100, growth(400, 4<<30, 4<<30), "with pointers Go's default")
	require.Equal(t, 75, growth(400, 4<<30, 3<<30))
	require.Equal(t, 50, growth(400, 4<<30, 0), "large values alone")
	require.Equal(t, 25, growth(25, 4<<30, 4<<30), "less if it is set")
}

// The percentage falls when the live heap is large, and rises again when it shrinks.
func TestGarbageIsBounded(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	boundGarbage(400)
	percent := func(want int) func() bool {
		return func() bool {
			runtime.GC()
			now := debug.SetGCPercent(100)
			debug.SetGCPercent(now)
			return now == want
		}
	}
	held := make([]byte, maxGarbage)
	require.Eventually(t, percent(75), 10*time.Second, time.Millisecond)
	runtime.KeepAlive(held)
	held = nil
	require.Eventually(t, percent(400), 10*time.Second, time.Millisecond)
}
