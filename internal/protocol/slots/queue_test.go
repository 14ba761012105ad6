package slots

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol"
)

func TestPop(t *testing.T) {
	queue := []protocol.Entry{{Index: 1, Payload: []byte("a")}, {Index: 2}}
	all := queue
	for i := range all {
		var e protocol.Entry
		e, queue = Pop(queue)
		require.EqualValues(t, i+1, e.Index)
		require.Zero(t, all[i], "its memory is released")
	}
	require.Empty(t, queue)
}

func TestAQueueThatEmptiesDoesNotAllocate(t *testing.T) {
	queue := make([]protocol.Entry, 0, 1)
	require.Zero(t, testsize.Allocations(t, 100, func() {
		queue = append(queue, protocol.Entry{Index: 1})
		_, queue = Pop(queue)
	}))
}
