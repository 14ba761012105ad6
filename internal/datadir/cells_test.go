package datadir

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
)

// A log that begins without cells may have some later. The directory says so before the first one is written, and no
// earlier program opens it from then on.
func TestADirectoryRecordsItsFirstCell(t *testing.T) {
	fs := vfs.NewMem()
	c := birthConfig(fs)
	c.Cells, c.Machine = false, nothing{}
	o, err := Open(c)
	require.NoError(t, err)
	id, err := parseIdentity(fs, "/d")
	require.NoError(t, err)
	require.False(t, id.Cells)
	require.Equal(t, formatSingle, id.Format)
	for range 2 {
		require.NoError(t, o.Log.Append([]wal.Record{{Instance: 1, Kind: wal.KindCell, Parts: [2][]byte{{1}}}}))
		id, err = parseIdentity(fs, "/d")
		require.NoError(t, err)
		require.True(t, id.Cells)
		require.Equal(t, formatCells, id.Format)
		require.NoError(t, o.Close())
		o, err = Open(c)
		require.NoError(t, err)
		require.True(t, o.config.Cells) // a damaged part of the log may have had cells
	}
	require.NoError(t, o.Close())
}
