package device

import (
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// file is an open file.
type file struct {
	d    *Disk
	n    *inode
	name string
	pos  int
}

func (f *file) Close() error { return nil }

func (f *file) Read(p []byte) (int, error) {
	k, err := f.ReadAt(p, int64(f.pos))
	f.pos += k
	if k > 0 && err == io.EOF {
		err = nil
	}
	return k, err
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if err := f.d.failing("read", f.name); err != nil {
		return 0, err
	}
	if off >= int64(len(f.n.data)) {
		return 0, io.EOF
	}
	k := copy(p, f.n.data[off:])
	if k < len(p) {
		return k, io.EOF
	}
	return k, nil
}

func (f *file) Write(p []byte) (int, error) {
	k, err := f.WriteAt(p, int64(f.pos))
	f.pos += k
	return k, err
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	if err := f.d.failing("write", f.name); err != nil {
		return 0, err
	}
	if f.d.Full && f.d.copiesOnWrite(f.name) {
		return 0, &os.PathError{Op: "write", Path: f.name, Err: syscall.ENOSPC}
	}
	if err := f.d.grow(f, "write", int(off)+len(p)); err != nil {
		return 0, err
	}
	if err := f.d.usePower(); err != nil {
		return 0, err
	}
	f.n.write(int(off), p)
	f.d.Written += int64(len(p))
	return len(p), nil
}

// copiesOnWrite reports whether a write to a file needs new space even if it overwrites data.
func (d *Disk) copiesOnWrite(name string) bool {
	return slices.ContainsFunc(d.CopyOnWrite, func(dir string) bool { return strings.HasPrefix(name, dir) })
}

func (f *file) Sync() error {
	if f.d.FailSync {
		f.n.failed = len(f.n.undo)
		return ErrSync
	}
	if err := f.d.usePower(); err != nil {
		return err
	}
	if f.n.dir {
		f.d.syncNames(clean(f.name))
	}
	for i, w := range f.n.undo {
		if i == 0 || w.off < f.n.fresh {
			f.n.fresh = w.off
		}
	}
	f.n.undo = slices.DeleteFunc(f.n.undo, func(w overwrite) bool { return !w.stuck })
	f.n.failed = 0
	return nil
}

func (f *file) SyncData() error { return f.Sync() }

func (f *file) Preallocate(off, length int64) error {
	if err := f.d.grow(f, "preallocate", int(off+length)); err != nil {
		return err
	}
	f.n.held = max(f.n.held, int(off+length))
	return nil
}

func (f *file) Stat() (os.FileInfo, error) {
	if err := f.d.failing("stat", f.name); err != nil {
		return nil, err
	}
	return fileInfo{path.Base(f.name), f.n}, nil
}

type fileInfo struct {
	name string
	n    *inode
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return int64(len(i.n.data)) }
func (i fileInfo) ModTime() time.Time { return time.Time{} }
func (i fileInfo) IsDir() bool        { return i.n.dir }
func (i fileInfo) Sys() any           { return nil }
func (i fileInfo) Mode() os.FileMode {
	if i.n.dir {
		return os.ModeDir | 0o755
	}
	return 0o644
}
