package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// Preallocate does not change the file's size: bytes that were never written must not look written.
func (f *osFile) Preallocate(offset, length int64) error {
	return f.failed("fallocate", unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, offset, length))
}

// SyncData does not sync the inode's times, which often avoids a write of the file system's journal.
func (f *osFile) SyncData() error { return f.failed("fdatasync", unix.Fdatasync(int(f.Fd()))) }

// ReadAhead advises the kernel that a file is read sequentially.
func ReadAhead(f File) {
	if fd, ok := Descriptor(f); ok {
		_ = unix.Fadvise(fd, 0, 0, unix.FADV_SEQUENTIAL) // advice only
	}
}

// FreeBytes counts in fragments, the unit that the kernel counts blocks in.
func (osFS) FreeBytes(name string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(name, &s); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: name, Err: err}
	}
	return uint64(s.Frsize) * s.Bavail, nil
}
