package wal

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/vfs"
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
