package braid

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// Caches are bounded by Go's memory limit, and those of all instances' logs together.
func TestCachesFitTheMemory(t *testing.T) {
	require.Equal(t, cacheBytes, cacheWithin(math.MaxInt64))
	require.Equal(t, cacheBytes, cacheWithin(1<<30))
	require.Equal(t, 16<<20, cacheWithin(256<<20))
	require.Zero(t, cacheWithin(0))
	for _, instances := range []int{1, 2, 4, 64} {
		require.LessOrEqual(t, instances*logCache(cacheBytes, instances), cacheBytes)
	}
	require.Equal(t, leastLogCache, logCache(0, 0))

	defer debug.SetMemoryLimit(debug.SetMemoryLimit(256 << 20))
	var l Limits
	l.complete()
	require.Equal(t, 16<<20, l.BodyCacheBytes)
	l = Limits{BodyCacheBytes: 1 << 30}
	l.complete()
	require.Equal(t, 1<<30, l.BodyCacheBytes, "what is set is kept")
}
