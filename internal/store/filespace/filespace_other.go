//go:build !linux

package filespace

import (
	"errors"
	"io/fs"
)

// Allocate cannot allocate blocks on this system.
func Allocate(string, int64) error { return errors.ErrUnsupported }

// IsFull does not know on this system.
func IsFull(error) bool { return false }

func allocatedBytes(fs.FileInfo) int64 { return 0 }
