package vfs

import (
	"errors"
	"math"
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
func ReadAhead(f File) { advise(f, unix.FADV_SEQUENTIAL) }

// NoReadAhead advises the kernel to read no more of a file than is asked for. Otherwise it reads bytes that were never
// written too, and NextWritten then takes them for written.
func NoReadAhead(f File) { advise(f, unix.FADV_RANDOM) }

func advise(f File, advice int) {
	if fd, ok := Descriptor(f); ok {
		_ = unix.Fadvise(fd, 0, 0, advice) // advice only
	}
}

// NextWritten returns the first offset from offset on where a file may have a byte other than zero; math.MaxInt64:
// there is none. Where the file system does not know that, it is offset. It moves the position of Read and Write.
func NextWritten(f File, offset int64) int64 {
	return seek(f, offset, unix.SEEK_DATA, offset)
}

// NextHole returns the first offset from offset on after which bytes were never written, or the file ends;
// math.MaxInt64 where the file system does not know. It moves the position of Read and Write.
func NextHole(f File, offset int64) int64 {
	return seek(f, offset, unix.SEEK_HOLE, math.MaxInt64)
}

// seek is lseek; unknown, if there is no answer.
func seek(f File, offset int64, whence int, unknown int64) int64 {
	fd, ok := Descriptor(f)
	if !ok {
		return unknown
	}
	next, err := unix.Seek(fd, offset, whence)
	switch {
	case errors.Is(err, unix.ENXIO): // nothing is written from offset on
		if whence == unix.SEEK_HOLE {
			return offset
		}
		return math.MaxInt64
	case err != nil || next < offset:
		return unknown
	}
	return next
}

// FreeBytes counts in fragments, the unit that the kernel counts blocks in.
func (osFS) FreeBytes(name string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(name, &s); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: name, Err: err}
	}
	return uint64(s.Frsize) * s.Bavail, nil
}
