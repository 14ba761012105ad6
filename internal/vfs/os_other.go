//go:build !linux

package vfs

func (*osFile) Preallocate(_, _ int64) error { return nil }

func (f *osFile) SyncData() error { return f.Sync() }

// ReadAhead does nothing here.
func ReadAhead(File) {}
