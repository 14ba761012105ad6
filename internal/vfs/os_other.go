//go:build !linux

package vfs

import "math"

func (*osFile) Preallocate(_, _ int64) error { return nil }

func (f *osFile) SyncData() error { return f.Sync() }

// ReadAhead does nothing here.
func ReadAhead(File) {}

// NoReadAhead does nothing here.
func NoReadAhead(File) {}

// NextWritten does not know what was written here.
func NextWritten(_ File, offset int64) int64 { return offset }

// NextHole does not know what was written here.
func NextHole(File, int64) int64 { return math.MaxInt64 }
