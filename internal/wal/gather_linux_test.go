package wal

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/braidlog/braid/internal/vfs"
)

// smallDisk is a file whose descriptor takes no more bytes than a small disk would.
type smallDisk struct {
	vfs.File
	small *os.File
}

func (f smallDisk) Fd() uintptr { return f.small.Fd() }

// newSmallDisk returns a file in memory that does not grow.
func newSmallDisk(t *testing.T, bytes int64) smallDisk {
	t.Helper()
	fd, err := unix.MemfdCreate("disk", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	require.NoError(t, err)
	f := os.NewFile(uintptr(fd), "disk")
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	require.NoError(t, f.Truncate(bytes))
	_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_GROW)
	require.NoError(t, err)
	return smallDisk{small: f}
}

// A batch for which the disk got full in the middle is written again as a whole once there is space. So the attempt
// before must not have changed it.
func TestGatherLeavesPiecesThatDoNotFit(t *testing.T) {
	pieces := [][]byte{payload(1, 1, 100), payload(1, 2, 3*maxWrite), payload(1, 3, 100)}
	before := slices.Clone(pieces)
	f := newSmallDisk(t, maxWrite+4096)
	require.Error(t, gather(f, pieces, 0), "no space for all")
	got := make([]byte, maxWrite)
	_, err := f.small.ReadAt(got, 0)
	require.NoError(t, err)
	require.True(t, bytes.Equal(slices.Concat(before...)[:maxWrite], got), "the first write had space")
	for i := range pieces {
		require.True(t, bytes.Equal(before[i], pieces[i]), "piece %d has %d of %d bytes", i, len(pieces[i]),
			len(before[i]))
	}
}
