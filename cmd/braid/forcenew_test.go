package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
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
