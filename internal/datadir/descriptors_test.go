package datadir

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/sys"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
)

// starved is a file system on which the process has no descriptor for one of its openings.
type starved struct {
	vfs.FS
	openings, refused int // refused: which one, from 1; 0: none
}

func (s *starved) refuse() error {
	s.openings++
	if s.openings == s.refused {
		return &os.PathError{Op: "open", Err: syscall.EMFILE}
	}
	return nil
}

func (s *starved) Create(name string) (vfs.File, error) {
	if err := s.refuse(); err != nil {
		return nil, err
	}
	return s.FS.Create(name)
}

func (s *starved) Open(name string) (vfs.File, error) {
	if err := s.refuse(); err != nil {
		return nil, err
	}
	return s.FS.Open(name)
}

func (s *starved) OpenDir(name string) (vfs.File, error) {
	if err := s.refuse(); err != nil {
		return nil, err
	}
	return s.FS.OpenDir(name)
}

// TestASnapshotWithoutDescriptorsDoesNotExist refuses each opening of a snapshot's writing in turn. The error has the
// cause, and no snapshot that may not be durable has its final name.
func TestASnapshotWithoutDescriptorsDoesNotExist(t *testing.T) {
	fs := &starved{FS: vfs.NewMem()}
	s, err := OpenSnapshots(fs, "s")
	require.NoError(t, err)
	h := SnapshotHeader{Meta: metaAt(1, 1, 1), HasState: true}
	for refused := 1; ; refused++ {
		fs.openings, fs.refused = 0, refused
		err := s.Receive(h, writeState("state"))
		if fs.openings < refused {
			require.NoError(t, err)
			break
		}
		require.True(t, sys.NoDescriptor(err), "%v", err)
		fs.refused = 0
		at, err := s.Positions()
		require.NoError(t, err)
		require.Empty(t, at, "opening %d", refused)
	}
	fs.refused = 0
	f, err := s.Open(1)
	require.NoError(t, err)
	require.NoError(t, f.Verify())
	require.NoError(t, f.Close())
}

// TestARegisterWithoutDescriptorsStays: the error is that of a full disk, which does not stop the member.
func TestARegisterWithoutDescriptorsStays(t *testing.T) {
	fs := &starved{FS: vfs.NewMem()}
	require.NoError(t, fs.MkdirAll("dir", 0o700))
	r := cluster.NewRegister(cluster.OwnIdentity{})
	for refused := 1; refused <= 2; refused++ {
		fs.openings, fs.refused = 0, refused
		var full *wal.FullError
		require.ErrorAs(t, SaveRegister(fs, "dir", r), &full)
		require.True(t, sys.NoDescriptor(full))
	}
	fs.refused = 0
	require.NoError(t, SaveRegister(fs, "dir", r))
}
