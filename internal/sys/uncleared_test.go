package sys

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// All bytes of a buffer can be written, no two buffers share one, and they survive garbage collections.
func TestUncleared(t *testing.T) {
	require.Empty(t, Uncleared(0))
	var all [][]byte
	for _, n := range []int{1, 2, 63, 64, 1000, 4096, 100_000, 1 << 20} {
		b := Uncleared(n)
		require.Len(t, b, n)
		for i := range b {
			b[i] = byte(n)
		}
		all = append(all, b)
		runtime.GC()
	}
	for _, b := range all {
		require.Equal(t, bytes.Repeat([]byte{byte(len(b))}, len(b)), b)
	}
}
