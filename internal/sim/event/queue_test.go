package event

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQueueOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var q Queue
	for range 1000 {
		q.Push(time.Duration(rng.IntN(50)), func() {})
	}
	last := Event{At: -1}
	for range 1000 {
		e := q.Pop()
		require.True(t, last.before(&e))
		last = e
	}
	require.Empty(t, q.heap)
}
