package member

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

func TestFaults(t *testing.T) {
	for want, errs := range map[Fault][]error{
		FaultNone:       {nil},
		FaultCompacted:  {&wal.CompactedError{Index: 3}},
		FaultReplaced:   {&wal.NotFoundError{Index: 3}, &ReplacedError{Index: 3}},
		FaultStopped:    {wal.ErrClosed},
		FaultDamaged:    {&wal.CorruptError{File: "f"}, &protocol.CorruptError{What: "log"}},
		FaultUnreadable: {errors.New("input/output error")},
	} {
		for _, err := range errs {
			if err != nil {
				err = fmt.Errorf("read: %w", err)
			}
			require.Equal(t, want, FaultOf(err), "%v", err)
			require.Equal(t, want >= FaultDamaged, want.Sick())
		}
	}
	err := &LoadError{Instance: 2, Index: 7, Err: &wal.CorruptError{File: "f", Offset: 9, Detail: "x"}}
	require.EqualError(t, err, "entry 7 of instance 2 cannot be read (damaged): wal: f is damaged at offset 9: x")
	var lost *LostError
	require.ErrorAs(t, lostIfSick(err), &lost)
	require.NotErrorAs(t, lostIfSick(&LoadError{Err: &wal.CompactedError{}}), &lost)
}

func TestWhatALeaderDoesThatCannotRead(t *testing.T) {
	const election = time.Second
	var u UnreadableEntries
	now := time.Minute
	require.Equal(t, RemedyWait, u.Remedy(now, election, FaultCompacted, 5, 9))
	require.Equal(t, RemedyWait, u.Remedy(now, election, FaultReplaced, 9, 5))
	require.Equal(t, RemedySnapshot, u.Remedy(now, election, FaultDamaged, 5, 5))
	require.Equal(t, RemedySnapshot, u.Remedy(now, election, FaultUnreadable, 4, 5))
	for range unreadTries {
		require.Equal(t, RemedyHandOver, u.Remedy(now, election, FaultDamaged, 6, 5))
		require.Equal(t, RemedyWait, u.Remedy(now+election/2, election, FaultDamaged, 6, 5))
		now += election
	}
	require.Equal(t, RemedyStop, u.Remedy(now, election, FaultDamaged, 6, 5), "nobody took over")
	require.Equal(t, RemedyHandOver, u.Remedy(now+time.Hour, election, FaultDamaged, 8, 5), "that is another story")
}

func TestWhereTheLogIsCut(t *testing.T) {
	require.EqualValues(t, 10, CutAt(10, 20, 0))
	require.EqualValues(t, 10, CutAt(10, 20, 7))
	require.EqualValues(t, 17, CutAt(10, 20, 17), "behind the damage")
	require.EqualValues(t, 10, CutAt(10, 20, 21), "which is not in the snapshot yet")
	require.EqualValues(t, 5, CutAt(0, 20, 5))
}

func TestWhatIsDoneAboutADamagedSnapshot(t *testing.T) {
	all := []protocol.Position{3, 7}
	rotten := &protocol.CorruptError{What: "snapshot"}
	retake, remove := SnapshotRemedy(7, all, rotten)
	require.True(t, retake && !remove)
	retake, remove = SnapshotRemedy(3, all, rotten)
	require.True(t, !retake && remove)
	retake, remove = SnapshotRemedy(3, all, errUnreadable)
	require.False(t, retake || remove, "it may be whole")
	retake, remove = SnapshotRemedy(7, all, errUnreadable)
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
