//go:build darwin || dragonfly || freebsd

package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// FreeBytes counts in blocks.
func (osFS) FreeBytes(name string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(name, &s); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: name, Err: err}
	}
	return uint64(s.Bsize) * uint64(max(0, s.Bavail)), nil
}
