package scale

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What other threads do meanwhile does not count.
func TestOnlyOwnWorkCounts(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const while = 50 * time.Millisecond
	spin := func(until func() bool) {
		for !until() {
		}
	}
	before, done := worked(), make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		began := worked()
		spin(func() bool { return worked() >= began+while })
	}()
	<-done
	require.Less(t, worked()-before, while/2)
	before = worked()
	spin(func() bool { return worked() >= before+time.Millisecond })
	require.GreaterOrEqual(t, worked()-before, time.Millisecond)
}
