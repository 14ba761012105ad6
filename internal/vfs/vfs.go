package vfs

import (
	"errors"
	"io"
	"os"
)

// FS is a file system. Names are those of package filepath. Errors are as package os has them: they wrap
// [os.ErrNotExist], [os.ErrExist], [os.ErrPermission] or the kernel's error, so that a full disk is told from a broken
// one. Its methods may be called concurrently.
//
// A change of names (Create, OpenReadWrite of a missing file, Rename, Remove, MkdirAll, Lock) is durable once the
// directory has been opened with OpenDir and synced. What was written to a file is durable once that file has been
// synced. After a crash each change that was not synced is there, or is not, or is there in part; everything else is
// as it was.
type FS interface {
	// Create makes a file for reading and writing. If there is one of this name, that name is removed first: an open
	// handle of the old file keeps it.
	Create(name string) (File, error)
	// Open opens a file for reading.
	Open(name string) (File, error)
	// OpenReadWrite opens a file for reading and writing, and makes it if it is missing. What it holds stays.
	OpenReadWrite(name string) (File, error)
	// OpenDir opens a directory, to be synced.
	OpenDir(name string) (File, error)
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// Rename gives a file another name in one step, in place of the file that has this name, if there is one.
	Rename(oldname, newname string) error
	// MkdirAll makes a directory and all missing ones above it. If it is there already, nothing happens.
	MkdirAll(dir string, perm os.FileMode) error
	// List returns the names in a directory, in any order.
	List(dir string) ([]string, error)
	// Stat describes a file or directory.
	Stat(name string) (os.FileInfo, error)
	// Lock takes a file that only serves as a lock, and makes it if it is missing. While it is held, Lock fails for every
	// other process and for this one. It ends with the process, or when it is closed.
	Lock(name string) (io.Closer, error)
	// FreeBytes returns how many bytes of space this process can still take on disk of a file or directory.
	// [errors.ErrUnsupported]: it is not known.
	FreeBytes(name string) (uint64, error)
}

// File is an open file or directory. Methods may be called concurrently, except for Write and Read, which share a
// position. A file whose system has descriptors may also have the method Fd() uintptr: writers may then write to the
// descriptor in place of WriteAt.
type File interface {
	io.Closer
	io.Reader
	io.ReaderAt
	io.Writer
	io.WriterAt
	// Preallocate takes space for this many bytes from an offset on, so that later writes to it find space. The file's
	// size and content stay. A file system that cannot does nothing, or fails with ENOSYS or EOPNOTSUPP.
	Preallocate(offset, length int64) error
	// Stat describes the file.
	Stat() (os.FileInfo, error)
	// Sync makes everything durable that was written to the file; of a directory, which names it has.
	Sync() error
	// SyncData is Sync, except for what reading the data does not need, such as the time of the last change.
	SyncData() error
}

// Descriptor returns the descriptor of a file that has one.
func Descriptor(f File) (fd int, ok bool) {
	d, ok := f.(interface{ Fd() uintptr })
	if !ok {
		return -1, false
	}
	return int(d.Fd()), true
}

// isMissing reports whether an error says that there is no such file.
func isMissing(err error) bool { return errors.Is(err, os.ErrNotExist) }
