package damage

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

func TestWhatIsDoneAboutADamagedSnapshot(t *testing.T) {
	all := []protocol.Position{3, 7}
	rotten, unreadable := &protocol.CorruptError{What: "snapshot"}, errors.New("input/output error")
	retake, remove := SnapshotRemedy(7, all, rotten)
	require.True(t, retake && !remove)
	retake, remove = SnapshotRemedy(3, all, rotten)
	require.True(t, !retake && remove)
	retake, remove = SnapshotRemedy(3, all, unreadable)
	require.False(t, retake || remove, "it may be whole")
	retake, remove = SnapshotRemedy(7, all, unreadable)
	require.True(t, retake && !remove)
	retake, remove = SnapshotRemedy(7, all, nil)
	require.False(t, retake || remove)
}

func TestDamageIsCountedOnce(t *testing.T) {
	var b DamageBook
	require.True(t, b.Note("f", 1, true))
	require.True(t, b.Note("f", 2, false))
	require.False(t, b.Note("f", 1, true))
	require.EqualValues(t, 2, b.Found)
	require.EqualValues(t, 1, b.Mended)
	require.Equal(t, 1, b.EndRound())
	require.False(t, b.Note("f", 1, true))
	require.Equal(t, 1, b.EndRound())
	require.Equal(t, 0, b.EndRound(), "it was not met again")
	require.EqualValues(t, 2, b.Mended)
	require.True(t, b.Note("f", 1, true), "new damage at the same place")
	require.False(t, b.Note("f", 1, false))
	require.EqualValues(t, 3, b.Mended)
}
