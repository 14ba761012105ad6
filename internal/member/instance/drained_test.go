package instance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// TestADrainIsAnnouncedRepeatedly: a member that restarts does not announce that it is not drained any more.
func TestADrainIsAnnouncedRepeatedly(t *testing.T) {
	var d Drained
	require.Empty(t, d.Now(0))
	d.Note(0, time.Second, 3, true)
	d.Note(0, time.Second, 2, true)
	require.Equal(t, []protocol.MemberID{2, 3}, d.Now(time.Second))
	d.Note(4*time.Second, time.Second, 3, true)
	require.Equal(t, []protocol.MemberID{3}, d.Now(drainedFor*time.Second))
	d.Note(5*time.Second, time.Second, 3, false)
	require.Equal(t, []protocol.MemberID{2}, d.Now(5*time.Second), "member 2 has not repeated it")
}

// TestADrainIsAnnouncedOnceInAnElectionTimeout: others remember an announcement for six of them.
func TestADrainIsAnnouncedOnceInAnElectionTimeout(t *testing.T) {
	var n DrainNotice
	require.True(t, n.Due(0, time.Second), "at once, at any time")
	require.False(t, n.Due(time.Second-1, time.Second))
	require.True(t, n.Due(time.Second, time.Second))
	require.False(t, n.Due(time.Second, time.Second))
}
