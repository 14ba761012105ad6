package vfs

import (
	"errors"
	"io"
	"os"
)

// FS is a file system. Names are those of package filepath. Errors are those of package os: they wrap
// [os.ErrNotExist], [os.ErrExist], [os.ErrPermission] or the kernel's error, so that a full disk can be distinguished
// from a broken one. Its methods may be called concurrently.
//
// A change of names (Create, OpenReadWrite of a missing file, Rename, Remove, MkdirAll, Lock) is durable once the
// directory has been opened with OpenDir and synced. Writes to a file are durable once the file has been synced.
// After a crash each change that was not synced is present, missing, or partly present; everything else is unchanged.
type FS interface {
	// Create creates a file for reading and writing. An existing file of this name is removed first: open handles of
	// the old file keep it.
	Create(name string) (File, error)
	// Open opens a file for reading.
	Open(name string) (File, error)
	// OpenReadWrite opens a file for reading and writing, and creates it if it is missing. It does not change the
	// contents.
	OpenReadWrite(name string) (File, error)
	// OpenDir opens a directory, to be synced.
	OpenDir(name string) (File, error)
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// Rename renames a file atomically, and replaces an existing file of the new name.
	Rename(oldname, newname string) error
	// MkdirAll creates a directory and all missing parents. It does nothing if the directory exists.
	MkdirAll(dir string, perm os.FileMode) error
	// List returns the names in a directory, in any order.
	List(dir string) ([]string, error)
	// Stat describes a file or directory.
	Stat(name string) (os.FileInfo, error)
	// Lock locks a file that only serves as a lock, and creates it if it is missing. While it is held, Lock fails for
	// every other process and for this one. The lock is released when it is closed, or when the process ends.
	Lock(name string) (io.Closer, error)
	// FreeBytes returns the free space, in bytes, that this process can use on the disk of a file or directory.
	// [errors.ErrUnsupported]: it is not known.
	FreeBytes(name string) (uint64, error)
}

// File is an open file or directory. Methods may be called concurrently, except for Write and Read, which share a
// position. A file whose system has descriptors may also have the method Fd() uintptr: writers may then write to the
// descriptor in place of WriteAt, and NextWritten and NextHole ask it.
type File interface {
	io.Closer
	io.Reader
	io.ReaderAt
	io.Writer
	io.WriterAt
	// Preallocate reserves space for length bytes from an offset on, so that later writes do not run out of space. The
	// file's size and contents do not change. A file system without support does nothing, or fails with ENOSYS or
	// EOPNOTSUPP.
	Preallocate(offset, length int64) error
	// Stat describes the file.
	Stat() (os.FileInfo, error)
	// Sync makes all writes to the file durable; for a directory, its names.
	Sync() error
	// SyncData is Sync without metadata that is not needed to read the data, such as the time of the last change.
	SyncData() error
}

// descriptor is implemented by files with a descriptor.
type descriptor interface{ Fd() uintptr }

// Descriptor returns the descriptor of a file that has one.
func Descriptor(f File) (fd int, ok bool) {
	d, ok := f.(descriptor)
	if !ok {
		return -1, false
	}
	return int(d.Fd()), true
}

// isMissing reports whether an error is that a file does not exist.
func isMissing(err error) bool { return errors.Is(err, os.ErrNotExist) }
