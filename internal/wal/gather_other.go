//go:build !linux

package wal

import "github.com/braidlog/braid/internal/vfs"

func gather(f vfs.File, pieces [][]byte, offset int64) error { return writeEach(f, pieces, offset) }
