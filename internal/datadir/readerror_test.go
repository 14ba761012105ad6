package datadir

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/protocol"
)

var errUnreadable = errors.New("input/output error")

// unreadable is a file system on which one file cannot be opened.
type unreadable struct {
	vfs.FS
	name string
}

func (u *unreadable) Open(name string) (vfs.File, error) {
	if strings.HasSuffix(name, u.name) {
		return nil, errUnreadable
	}
	return u.FS.Open(name)
}

// TestASnapshotThatCannotBeReadIsNotDamaged: a read error does not show what is on disk. The snapshot is kept, and
// the member does not go back to an older one.
func TestASnapshotThatCannotBeReadIsNotDamaged(t *testing.T) {
	fs := &unreadable{FS: vfs.NewMem(), name: "none"}
	s, err := OpenSnapshots(fs, "s")
	require.NoError(t, err)
	for _, at := range []member.Meta{metaAt(1, 1, 1), metaAt(2, 2, 1)} {
		require.NoError(t, s.Write(SnapshotHeader{Meta: at, HasState: true}, writeState("state")))
	}
	fs.name = s.path(2)
	_, ok, err := s.choose(false, 0)
	require.ErrorIs(t, err, errUnreadable)
	require.False(t, ok)
	fs.name = "none"
	h, ok, err := s.choose(false, 0)
	require.NoError(t, err)
	require.True(t, ok)
	require.EqualValues(t, 2, h.Cursor.Position)
	require.Empty(t, s.Damaged)
}

// TestASnapshotThatCannotBeReadIsNotReplaced: with merged instances a snapshot at the same position may go further. A
// member may have dropped its log for it, so one that goes less far must not take its place because the disk fails to
// read.
func TestASnapshotThatCannotBeReadIsNotReplaced(t *testing.T) {
	fs := &unreadable{FS: vfs.NewMem(), name: "none"}
	s, err := OpenSnapshots(fs, "s")
	require.NoError(t, err)
	at := func(round protocol.Round) SnapshotHeader {
		cursor := order.Begin(2, true)
		cursor.Position, cursor.Next.Round = 5, round
		return SnapshotHeader{Meta: member.Meta{Cursor: cursor}, HasState: true}
	}
	require.NoError(t, s.Write(at(9), writeState("further")))
	fs.name = s.path(5)
	require.ErrorIs(t, s.Write(at(7), writeState("less far")), errUnreadable)
	fs.name = "none"
	h, ok, err := s.Newest()
	require.NoError(t, err)
	require.True(t, ok)
	require.EqualValues(t, 9, h.Cursor.Next.Round)
}
