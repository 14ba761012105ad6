// Package errorfs is a file system whose operations fail, for tests.
package errorfs

import (
	"io"
	"os"

	"github.com/braidlog/braid/internal/vfs"
)

// Op is an operation that is about to be done.
type Op struct {
	Kind   OpKind
	Path   string // of a rename, the old name
	Offset int64  // of OpFileReadAt and OpFileWriteAt
}

// OpKind is the kind of an operation. Those with File in their name are an open file's or directory's.
type OpKind int

// The kinds.
const (
	OpCreate OpKind = iota
	OpOpen          // also OpenReadWrite, even if it makes the file
	OpOpenDir
	OpRemove
	OpRename
	OpMkdirAll
	OpLock
	OpList
	OpStat
	OpFreeBytes
	OpFilePreallocate
	OpFileRead
	OpFileReadAt
	OpFileWrite
	OpFileWriteAt
	OpFileStat
	OpFileSync
	OpFileSyncData
)

// Reads reports whether operations of a kind change nothing.
func (k OpKind) Reads() bool {
	switch k {
	case OpOpen, OpOpenDir, OpList, OpStat, OpFreeBytes, OpFileRead, OpFileReadAt, OpFileStat:
		return true
	default:
		return false
	}
}

// Injector decides which operations fail. It is called before each of them, also concurrently.
type Injector interface {
	// MaybeError returns the error that an operation fails with; nil: it is done.
	MaybeError(op Op) error
}

// InjectorFunc is a function as an [Injector].
type InjectorFunc func(Op) error

// MaybeError implements [Injector].
func (f InjectorFunc) MaybeError(op Op) error { return f(op) }

// Wrap returns a file system that does what fs does, unless inj fails it. Closing never fails by it.
func Wrap(fs vfs.FS, inj Injector) vfs.FS { return &errorFS{fs, inj} }

type errorFS struct {
	fs  vfs.FS
	inj Injector
}

// after does something unless an operation fails.
func after[T any](inj Injector, op Op, do func() (T, error)) (out T, err error) {
	if err := inj.MaybeError(op); err != nil {
		return out, err
	}
	return do()
}

func (e *errorFS) open(kind OpKind, name string, open func(string) (vfs.File, error)) (vfs.File, error) {
	f, err := after(e.inj, Op{Kind: kind, Path: name}, func() (vfs.File, error) { return open(name) })
	if err != nil {
		return nil, err
	}
	return &errorFile{f, name, e.inj}, nil
}

func (e *errorFS) Create(name string) (vfs.File, error) { return e.open(OpCreate, name, e.fs.Create) }

func (e *errorFS) Open(name string) (vfs.File, error) { return e.open(OpOpen, name, e.fs.Open) }

func (e *errorFS) OpenReadWrite(name string) (vfs.File, error) {
	return e.open(OpOpen, name, e.fs.OpenReadWrite)
}

func (e *errorFS) OpenDir(name string) (vfs.File, error) {
	return e.open(OpOpenDir, name, e.fs.OpenDir)
}

func (e *errorFS) change(kind OpKind, name string, do func() error) error {
	if err := e.inj.MaybeError(Op{Kind: kind, Path: name}); err != nil {
		return err
	}
	return do()
}

func (e *errorFS) Remove(name string) error {
	return e.change(OpRemove, name, func() error { return e.fs.Remove(name) })
}

func (e *errorFS) Rename(oldname, newname string) error {
	return e.change(OpRename, oldname, func() error { return e.fs.Rename(oldname, newname) })
}

func (e *errorFS) MkdirAll(dir string, perm os.FileMode) error {
	return e.change(OpMkdirAll, dir, func() error { return e.fs.MkdirAll(dir, perm) })
}

func (e *errorFS) List(dir string) ([]string, error) {
	return after(e.inj, Op{Kind: OpList, Path: dir}, func() ([]string, error) { return e.fs.List(dir) })
}

func (e *errorFS) Stat(name string) (os.FileInfo, error) {
	return after(e.inj, Op{Kind: OpStat, Path: name}, func() (os.FileInfo, error) { return e.fs.Stat(name) })
}

func (e *errorFS) Lock(name string) (io.Closer, error) {
	return after(e.inj, Op{Kind: OpLock, Path: name}, func() (io.Closer, error) { return e.fs.Lock(name) })
}

func (e *errorFS) FreeBytes(name string) (uint64, error) {
	return after(e.inj, Op{Kind: OpFreeBytes, Path: name}, func() (uint64, error) { return e.fs.FreeBytes(name) })
}

// errorFile is a file of an errorFS. It has no descriptor, so every write passes by the injector.
type errorFile struct {
	vfs.File
	path string
	inj  Injector
}

func (f *errorFile) fail(kind OpKind, offset int64) error {
	return f.inj.MaybeError(Op{Kind: kind, Path: f.path, Offset: offset})
}

func (f *errorFile) Read(p []byte) (int, error) {
	if err := f.fail(OpFileRead, 0); err != nil {
		return 0, err
	}
	return f.File.Read(p)
}

func (f *errorFile) ReadAt(p []byte, offset int64) (int, error) {
	if err := f.fail(OpFileReadAt, offset); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, offset)
}

func (f *errorFile) Write(p []byte) (int, error) {
	if err := f.fail(OpFileWrite, 0); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

func (f *errorFile) WriteAt(p []byte, offset int64) (int, error) {
	if err := f.fail(OpFileWriteAt, offset); err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, offset)
}

func (f *errorFile) Preallocate(offset, length int64) error {
	if err := f.fail(OpFilePreallocate, 0); err != nil {
		return err
	}
	return f.File.Preallocate(offset, length)
}

func (f *errorFile) Stat() (os.FileInfo, error) {
	if err := f.fail(OpFileStat, 0); err != nil {
		return nil, err
	}
	return f.File.Stat()
}

func (f *errorFile) Sync() error {
	if err := f.fail(OpFileSync, 0); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *errorFile) SyncData() error {
	if err := f.fail(OpFileSyncData, 0); err != nil {
		return err
	}
	return f.File.SyncData()
}
