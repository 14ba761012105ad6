package braid

import "github.com/braidlog/braid/internal/vfs"

// FS is a file system, for [Options.FS].
//
//	Create(name string) (File, error)             // a new file, in place of one of this name
//	Open(name string) (File, error)               // to be read
//	OpenReadWrite(name string) (File, error)      // made if missing; what it holds stays
//	OpenDir(name string) (File, error)            // to be synced
//	Remove(name string) error                     // a file or an empty directory
//	Rename(oldname, newname string) error         // in one step, in place of a file that has the new name
//	MkdirAll(dir string, perm os.FileMode) error  // with all directories above it
//	List(dir string) ([]string, error)            // the names in it, in any order
//	Stat(name string) (os.FileInfo, error)
//	Lock(name string) (io.Closer, error)          // fails while any process holds it, this one too
//	FreeBytes(name string) (uint64, error)        // that the disk still takes, or errors.ErrUnsupported
//
// Names are those of package filepath. The methods are called concurrently. Errors wrap os.ErrNotExist, os.ErrExist and
// os.ErrPermission, and the kernel's errors: a member waits when the disk is full (ENOSPC, EDQUOT) or no descriptor is
// left (EMFILE, ENFILE), and stops at other errors.
//
// What the log relies on: a change of names is durable once the directory was opened with OpenDir and synced, and
// content once its file was synced. A sync that returns nil has reached the disk. After a crash, each change that was
// not synced is there, or not, or in part, and everything else is as it was. A member whose file system breaks this may
// lose acknowledged commands.
type FS = vfs.FS

// File is an open file or directory of an [FS]. It implements io.Reader, io.ReaderAt, io.Writer, io.WriterAt and
// io.Closer.
//
//	Preallocate(offset, length int64) error // takes space; the file's size and content stay. It may do nothing.
//	Stat() (os.FileInfo, error)
//	Sync() error                            // makes durable what was written; of a directory, its names
//	SyncData() error                        // Sync, except for what reading does not need; it may be the same as Sync
//
// Its methods are called concurrently, except for Read and Write. Writes leave the bytes that they are given as they
// are. If a file has a method Fd() uintptr as well, the log may write to the descriptor in place of WriteAt, and ask
// it which bytes were never written: a wrapper that must see each write has none, as one that embeds a File does.
type File = vfs.File

// OSFS returns the operating system's file system.
func OSFS() FS { return vfs.OS }
