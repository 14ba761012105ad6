package transport

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testsize"
)

// A frame that is sent is copied to memory of its connection. One that is received has memory of its own, because the
// log keeps entries in it.
func TestAllocationsOfAFrame(t *testing.T) {
	const batch = 512
	came := make(chan struct{}, 1)
	count := 0
	a, _ := pair(t, func(_ *Options, h *testHandler) {
		h.frame = func(uint64, uint32, []byte) {
			if count++; count%batch == 0 {
				came <- struct{}{}
			}
		}
	})
	parts := [][]byte{make([]byte, 40), make([]byte, 160)}
	got := testsize.Allocations(t, 50, func() {
		for range batch {
			if !a.Send(2, 0, parts) {
				t.Fatal("not sent")
			}
		}
		<-came
	})
	require.LessOrEqual(t, got, batch+4.0)
}
