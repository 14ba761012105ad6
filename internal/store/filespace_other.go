//go:build !linux

package store

import (
	"errors"
	"io/fs"
)

func allocate(string, int64) error { return errors.ErrUnsupported }

func isFull(error) bool { return false }

func allocatedBytes(fs.FileInfo) int64 { return 0 }
