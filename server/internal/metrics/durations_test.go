package metrics

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each time is in the bucket whose bound it does not exceed, and buckets are at most a quarter wider than the last.
func TestBucketsOfTimes(t *testing.T) {
	for i := range timesBuckets - 1 {
		bound := TimesBound(i)
		require.Equal(t, i, timesIndex(bound), bound)
		require.Equal(t, i+1, timesIndex(bound+1), bound)
		if i >= 4 {
			require.LessOrEqual(t, bound-TimesBound(i-1), TimesBound(i-1)/4+1)
		}
	}
	require.Zero(t, timesIndex(0))
	require.Zero(t, timesIndex(-1))
	require.Equal(t, timesBuckets-1, timesIndex(time.Hour))
	largest := time.Millisecond << (etcdBounds - 1)
	require.Equal(t, largest, TimesBound(timesBuckets-2), "etcd's bounds are among them")
}
