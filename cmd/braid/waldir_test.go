package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheLogIsWhereWALDirSays(t *testing.T) {
	data, wal, other := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "a", "wal"), t.TempDir()
	require.NoError(t, placeLog(data, ""))
	require.NoDirExists(t, data, "nothing is to be placed")

	require.NoError(t, placeLog(data, other))
	require.NoError(t, os.Remove(filepath.Join(other, walMark)))
	require.NoError(t, placeLog(data, wal), "no member began with what was given at first")
	require.NoError(t, refuseForeign(data, wal))
	beginMember(t, data)
	require.FileExists(t, filepath.Join(wal, "member.json"))
	require.NoError(t, placeLog(data, wal), "the second start")
	require.NoError(t, placeLog(data, ""), "it is known where the log is")
	require.NoError(t, os.Symlink(wal, filepath.Join(other, "short")))
	require.NoError(t, placeLog(data, filepath.Join(other, "short")), "another way to it")
	require.ErrorContains(t, placeLog(data, other), "the log is in "+wal+". Move its files")

	require.NoError(t, os.RemoveAll(wal))
	for _, missing := range []string{"which cannot be read", "where there is none"} { // and with the place for a disk
		for _, dir := range []string{wal, ""} {
			err := placeLog(data, dir)
			require.ErrorContains(t, err, missing)
			require.ErrorContains(t, err, "is its disk mounted?")
		}
		require.NoError(t, os.MkdirAll(wal, 0o700))
	}
}

// beginMember makes the files that a member has once it has begun.
func beginMember(t *testing.T, data string) {
	t.Helper()
	for _, file := range []string{filepath.Join(logDir, "member.json"), filepath.Join(storeDir, "db")} {
		require.NoError(t, os.MkdirAll(filepath.Join(data, filepath.Dir(file)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(data, file), nil, 0o600))
	}
}

func TestALogIsMoved(t *testing.T) {
	data, wal := t.TempDir(), t.TempDir()
	beginMember(t, data)
	require.ErrorContains(t, placeLog(data, wal), "so that member.json is in "+wal)
	require.NoError(t, os.Rename(filepath.Join(data, logDir), filepath.Join(wal, logDir)))
	require.ErrorContains(t, placeLog(data, wal), "is the disk mounted?", "it is one directory too deep")
	require.NoError(t, placeLog(data, filepath.Join(wal, logDir)))
	require.FileExists(t, filepath.Join(data, logDir, "member.json"))
}

func TestPlacesThatAreNoneForTheLog(t *testing.T) {
	root := t.TempDir()
	data := filepath.Join(root, "data")
	for _, dir := range []string{data, root, filepath.Join(data, logDir), filepath.Join(data, logDir, "x")} {
		require.ErrorContains(t, placeLog(data, dir), "choose another one", dir)
	}
	wal := filepath.Join(data, "wal")
	require.NoError(t, placeLog(data, wal), "in the data directory, as etcd's")
	require.NoError(t, refuseForeign(data, wal), "if the start fails after that")
	require.Error(t, refuseForeign(data, ""))
}
