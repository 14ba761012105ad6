//go:build !linux

package vfs

import "errors"

func (*osFile) Preallocate(_, _ int64) error { return nil }

func (f *osFile) SyncData() error { return f.Sync() }

// ReadAhead does nothing here.
func ReadAhead(File) {}

func (osFS) FreeBytes(string) (uint64, error) { return 0, errors.ErrUnsupported }
