package paxos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A way is as long as the shortest round trip of two periods. A queue that lasts does not make it longer at once, and a way that has become
// longer is noticed.
func TestWay(t *testing.T) {
	const ms, period = time.Millisecond, time.Second
	var w way
	require.Zero(t, w.takes())
	w.took(3*ms, 0, period)
	w.took(ms, ms, period)
	w.took(50*ms, 900*ms, period)
	require.Equal(t, ms, w.takes(), "a queue")
	w.took(40*ms, 1100*ms, period)
	require.Equal(t, ms, w.takes(), "the period before counts")
	w.took(45*ms, 1900*ms, period)
	require.Equal(t, ms, w.takes())
	w.took(60*ms, 2200*ms, period)
	require.Equal(t, 40*ms, w.takes(), "it is longer now")
	w.took(2*ms, 2300*ms, period)
	require.Equal(t, 2*ms, w.takes(), "and a shorter one counts at once")
}
