package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheLogIsWhereWALDirSays(t *testing.T) {
	data, wal, other := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "wal"), t.TempDir()
	require.NoError(t, placeLog(data, ""))
	require.NoDirExists(t, data, "nothing is to be placed")

	require.NoError(t, placeLog(data, wal))
	require.NoError(t, os.WriteFile(filepath.Join(data, logDir, "file"), nil, 0o600))
	require.FileExists(t, filepath.Join(wal, "file"))
	require.NoError(t, placeLog(data, wal), "the second start")
	require.NoError(t, placeLog(data, ""), "it is known where the log is")
	require.NoError(t, refuseForeign(data))

	require.ErrorContains(t, placeLog(data, other), "the log is in "+wal+". Move its files")
	require.NoError(t, os.RemoveAll(wal))
	for _, dir := range []string{wal, ""} {
		require.ErrorContains(t, placeLog(data, dir), "is its disk mounted?")
	}

	data = t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(data, logDir), 0o700))
	require.ErrorContains(t, placeLog(data, other), "Move this directory there")
	require.NoError(t, os.Remove(filepath.Join(data, logDir)))
	require.NoError(t, placeLog(data, other), "it was moved")
}
