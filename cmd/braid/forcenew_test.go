package main

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/settings"
)

// TestForcingIsCompleted stops the change after each of its steps: the next start completes it, whatever was done.
func TestForcingIsCompleted(t *testing.T) {
	for steps := range 6 {
		dir := t.TempDir()
		write := func(name, content string) {
			file := filepath.Join(dir, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
			require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		}
		write(forceWork+"/"+storeDir+"/db", "new")
		write(logDir+"/member.json", "former")
		write(storeDir+"/db", "former")
		before := filepath.Join(dir, forceBefore)
		for i, step := range []func() error{
			func() error { return os.MkdirAll(before, 0o700) },
			func() error { return os.Rename(filepath.Join(dir, logDir), filepath.Join(before, logDir)) },
			func() error { return os.Rename(filepath.Join(dir, storeDir), filepath.Join(before, storeDir)) },
			func() error { return os.Rename(filepath.Join(dir, forceWork, storeDir), filepath.Join(dir, storeDir)) },
			func() error { return os.RemoveAll(filepath.Join(dir, forceWork)) },
		} {
			if i < steps {
				require.NoError(t, step())
			}
		}
		for range 2 {
			require.NoError(t, completeForced(dir))
			for file, want := range map[string]string{
				storeDir + "/db": "new", forceBefore + "/" + logDir + "/member.json": "former",
				forceBefore + "/" + storeDir + "/db": "former",
			} {
				content, err := os.ReadFile(filepath.Join(dir, file))
				require.NoError(t, err, "%s after %d steps", file, steps)
				require.Equal(t, want, string(content))
			}
			require.NoDirExists(t, filepath.Join(dir, forceWork))
			require.NoDirExists(t, filepath.Join(dir, logDir))
		}
	}
}

// TestForcedClusterThatWasDeleted: once its log and database are deleted, nothing is left of it. Before the first start
// there is no log yet.
func TestForcedClusterThatWasDeleted(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, forcedFile)
	require.NoError(t, os.WriteFile(file, []byte(`{"cluster":7,"member":8,"name":"m1"}`), 0o600))
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	for _, left := range []string{filepath.Join(forceWork, storeDir), storeDir, logDir} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, left), 0o700))
		who, err := forceNew(t.Context(), &settings.Settings{DataDir: dir}, logger)
		require.NoError(t, err)
		require.EqualValues(t, 7, who.cluster)
		require.NoError(t, os.RemoveAll(filepath.Join(dir, storeDir)))
	}
	require.NoError(t, os.RemoveAll(filepath.Join(dir, logDir)))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, forceBefore)))
	who, err := forceNew(t.Context(), &settings.Settings{DataDir: dir}, logger)
	require.NoError(t, err)
	require.Nil(t, who)
	require.NoFileExists(t, file)
}
