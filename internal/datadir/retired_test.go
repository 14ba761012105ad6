package datadir

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// nothing is a state machine without a state.
type nothing struct{}

func (nothing) Apply([]member.Command) error       { return nil }
func (nothing) Snapshot() (member.Snapshot, error) { return nil, nil }
func (nothing) Restore(r io.Reader) error          { _, err := io.Copy(io.Discard, r); return err }

// A retired instance is removed from the log permanently once it is retired in every snapshot on disk. Before that, a
// member that has to go back to a snapshot in which it is active must detect that it has dropped its log, with its
// promises.
func TestARetiredInstanceIsForgottenWhenNoSnapshotNeedsIt(t *testing.T) {
	fs := vfs.NewMem()
	begin := order.Begin(2, true)
	config := Config{FS: fs, Dir: "/d", Cluster: 7, Self: 1, Chance: func() uint64 { return 5 }, Begin: begin,
		Members: []protocol.Member{{ID: 1}}, Machine: nothing{}}
	known := func() bool {
		t.Helper()
		o, err := Open(config)
		require.NoError(t, err)
		defer func() { require.NoError(t, o.Close()) }()
		for _, id := range o.Log.Instances() {
			if id == 2 {
				return true
			}
		}
		return false
	}
	o, err := Open(config)
	require.NoError(t, err)
	require.NoError(t, o.Log.Append([]wal.Record{{Instance: 2, Kind: wal.KindState, Parts: [2][]byte{make([]byte, 24)}}}))
	require.NoError(t, o.Close())
	require.True(t, known(), "it is in force")

	snaps, err := OpenSnapshots(fs, "/d/snapshots")
	require.NoError(t, err)
	meta := member.Bootstrap(begin, config.Members)
	meta.Cursor.Position, meta.Cursor.Points, meta.Others = 5, meta.Cursor.Points[:1], nil
	require.NoError(t, snaps.Write(SnapshotHeader{Meta: meta, HasState: true}, writeState("state")))
	require.True(t, known(), "the snapshot before is from before it was retired")
	require.True(t, known())

	good, err := wal.ReadFile(fs, snaps.path(5), 1<<20)
	require.NoError(t, err)
	bad := append([]byte(nil), good...)
	bad[len(bad)-snapTrailer-1] ^= 1
	require.NoError(t, wal.WriteFile(fs, snaps.path(5), bad))
	_, err = Open(config)
	require.ErrorContains(t, err, "instance 2 gave up its entries", "the newest snapshot is damaged")
	require.NoError(t, wal.WriteFile(fs, snaps.path(5), good))

	require.True(t, known())
	require.NoError(t, snaps.Prune(5))
	require.False(t, known())
	require.False(t, known())
}

// If the oldest snapshot cannot be read, it may be one that needs the instance.
func TestWhereTheOldestSnapshotStands(t *testing.T) {
	fs := &unreadable{FS: vfs.NewMem(), name: "none"}
	s, err := OpenSnapshots(fs, "s")
	require.NoError(t, err)
	at, err := s.Settled()
	require.NoError(t, err)
	require.False(t, at.Retired(1), "there is none")
	for _, m := range []member.Meta{metaAt(3, 1, 1), metaAt(8, 2, 1)} {
		require.NoError(t, s.Write(SnapshotHeader{Meta: m, HasState: true}, writeState("state")))
	}
	at, err = s.Settled()
	require.NoError(t, err)
	require.EqualValues(t, 3, at.Position)
	fs.name = s.path(3)
	_, err = s.Settled()
	require.ErrorIs(t, err, errUnreadable)
}
