package transport

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLater: a frame that may wait leaves with the next one that may not, and otherwise after laterBy.
func TestLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1<<20, false)
		var g outFrames
		require.False(t, q.swap(&g))

		require.True(t, q.putLater(kindFrame, 1, []byte("a")))
		require.True(t, q.put(kindFrame, 1, []byte("b")))
		began := time.Now()
		<-q.wake
		require.Zero(t, time.Since(began))
		require.True(t, q.swap(&g))
		require.Equal(t, 2, g.frames)
		g.reset()
		require.False(t, q.swap(&g))

		<-time.After(laterBy / 2) // by the bubble's clock
		require.True(t, q.putLater(kindFrame, 1, []byte("c")))
		require.True(t, q.putLater(kindFrame, 1, []byte("d")))
		began = time.Now()
		<-q.wake
		require.Equal(t, laterBy, time.Since(began))
		require.True(t, q.swap(&g))
		require.Equal(t, 2, g.frames)
	})
}

// TestLaterBehindAWrite: a frame that may wait is not held back while the writer writes. The writer looks for more
// afterwards.
func TestLaterBehindAWrite(t *testing.T) {
	q := newQueue(1<<20, false)
	require.True(t, q.putLater(kindFrame, 1, []byte("a")))
	require.Nil(t, q.patience)
	var g outFrames
	require.True(t, q.swap(&g))
	require.Equal(t, 1, g.frames)
}

// TestLaterAfterALostConnection: frames that a lost connection dropped are not waited for.
func TestLaterAfterALostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1<<20, false)
		var g outFrames
		require.False(t, q.swap(&g))
		require.True(t, q.putLater(kindFrame, 1, []byte("a")))
		require.Equal(t, 1, q.discard())
		require.False(t, q.swap(&g))
		<-time.After(2 * laterBy)
		require.Empty(t, q.wake)
		require.True(t, q.putLater(kindFrame, 1, []byte("b")))
		<-q.wake
		require.True(t, q.swap(&g))
		require.Equal(t, 1, g.frames)
	})
}
