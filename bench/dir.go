package bench

import (
	"fmt"
	"os"
)

// inMemory reports whether a directory is in memory, where an fsync costs nothing.
func inMemory(dir string) bool {
	fs := Filesystem(dir)
	return fs == "tmpfs" || fs == "ramfs"
}

// DataDir creates a new directory for a run and returns a function that removes it. With parent "" it is on the first
// of the temporary, the working and the home directory that is on a disk. It is an error if the directory is in
// memory, where an fsync would cost nothing.
func DataDir(parent string) (dir string, remove func(), err error) {
	candidates := []string{parent}
	if parent == "" {
		candidates = []string{os.TempDir(), "."}
		if home, err := os.UserHomeDir(); err == nil {
			candidates = append(candidates, home)
		}
	} else if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", nil, fmt.Errorf("data directory: %w", err)
	}
	for _, c := range candidates {
		if inMemory(c) {
			continue
		}
		if dir, err = os.MkdirTemp(c, "braid-bench-"); err == nil {
			return dir, func() { _ = os.RemoveAll(dir) }, nil
		}
	}
	if err != nil {
		return "", nil, fmt.Errorf("data directory: %w", err)
	}
	return "", nil, fmt.Errorf("data directory: %q is in memory (%s), where an fsync costs nothing: give one on a disk",
		candidates, Filesystem(candidates[0]))
}
