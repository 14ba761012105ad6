package instance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
)

func TestWhatALeaderDoesThatCannotRead(t *testing.T) {
	const election = time.Second
	var u UnreadableEntries
	now := time.Minute
	require.Equal(t, RemedyWait, u.Remedy(now, election, member.FaultCompacted, 5, 9))
	require.Equal(t, RemedyWait, u.Remedy(now, election, member.FaultReplaced, 9, 5))
	require.Equal(t, RemedySnapshot, u.Remedy(now, election, member.FaultDamaged, 5, 5))
	require.Equal(t, RemedySnapshot, u.Remedy(now, election, member.FaultUnreadable, 4, 5))
	for range unreadTries {
		require.Equal(t, RemedyHandOver, u.Remedy(now, election, member.FaultDamaged, 6, 5))
		require.Equal(t, RemedyWait, u.Remedy(now+election/2, election, member.FaultDamaged, 6, 5))
		now += election
	}
	require.Equal(t, RemedyStop, u.Remedy(now, election, member.FaultDamaged, 6, 5), "nobody took over")
	require.Equal(t, RemedyHandOver, u.Remedy(now+time.Hour, election, member.FaultDamaged, 8, 5), "that is another story")
}
