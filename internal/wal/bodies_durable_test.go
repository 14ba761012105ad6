package wal

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/vfs/errorfs"
)

func TestBodiesDurable(t *testing.T) {
	options := BodiesOptions{FS: vfs.NewMem(), Dir: "bodies", SegmentBytes: 16 << 10}
	b, err := OpenBodies(options)
	require.NoError(t, err)
	require.NoError(t, b.Append(Body{Instance: 1, Index: 5, Term: 1, Form: 1, K: 1, Size: 3, Bytes: []byte("abc")}))
	require.False(t, b.Durable(1, 5))
	require.NoError(t, b.Sync())
	require.False(t, b.Durable(1, 5), "its entry is not")
	b.LogDurable()
	require.True(t, b.Durable(1, 5))
	require.False(t, b.Durable(1, 6), "not there")
	require.NoError(t, b.Append(Body{Instance: 1, Index: 5, Term: 2, Form: 1, K: 1, Size: 3, Bytes: []byte("def")}))
	require.False(t, b.Durable(1, 5), "Find tells of the newer one")
	require.NoError(t, b.Close())
	b, err = OpenBodies(options)
	require.NoError(t, err)
	require.True(t, b.Durable(1, 5))
	require.NoError(t, b.Close())
}

// TestNothingDoesNotReplaceSomething: a body that was restored before its entry arrived is kept.
func TestNothingDoesNotReplaceSomething(t *testing.T) {
	b, err := OpenBodies(BodiesOptions{FS: vfs.NewMem(), Dir: "bodies", SegmentBytes: 16 << 10})
	require.NoError(t, err)
	row := Body{Instance: 1, Index: 7, Term: 2, Form: 3, K: 2, Size: 6, Bytes: []byte("abc")}
	require.NoError(t, b.Append(row))
	none := row
	none.Form, none.Bytes = 0, nil
	require.NoError(t, b.Append(none))
	held, err := b.Read(1, 7)
	require.NoError(t, err)
	require.Equal(t, row, held)

	none.Term = 3
	require.NoError(t, b.Append(none), "of another entry")
	found, ok := b.Find(1, 7)
	require.True(t, ok)
	require.Equal(t, uint64(3), found.Term)
	require.NoError(t, b.Sync())
	require.NoError(t, b.Close())
}

// A file is used again only after the loss of its old name is durable, also if the disk was full in between. Otherwise
// it would be found under that name with another file's header, which looks like lost bodies.
func TestAFileIsReusedAfterItsOldNameIsGone(t *testing.T) {
	mem := vfs.NewCrashableMem()
	full, reuses := false, 0
	b := openBodiesMem(t, hooked(mem, func(o errorfs.Op) error {
		switch {
		case full && o.Kind == errorfs.OpCreate:
			return syscall.ENOSPC
		case o.Kind == errorfs.OpRename && strings.HasSuffix(o.Path, freeSuffix):
			reuses++
			again := openBodiesMem(t, mem.Crash(0, nil))
			require.Empty(t, again.Damaged())
			require.NoError(t, again.Close())
		}
		return nil
	}))
	require.NoError(t, b.Append(someBody(1, 1, 1, testBodies/2)))
	require.NoError(t, b.Append(someBody(1, 2, 1, testBodies/2))) // in another file
	require.NoError(t, b.Sync())
	b.Release(1, 1)
	require.NoError(t, b.Sync()) // the first file is free

	full = true
	var noSpace *FullError
	require.ErrorAs(t, b.Append(someBody(1, 3, 1, 2*testBodies)), &noSpace, "a body that needs a file of its own")
	require.NoError(t, b.Append(someBody(1, 3, 2, testBodies/2)), "one that fits the free file")
	require.Equal(t, 1, reuses)
	require.NoError(t, b.Close())
}
