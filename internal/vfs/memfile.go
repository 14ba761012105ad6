package vfs

import (
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"time"
)

// memFile is an open file or directory of a [Mem].
type memFile struct {
	m        *Mem
	n        *node // nil: it was closed
	name     string
	pos      int
	writable bool
}

// check returns the error of an impossible operation on the file's contents. The file system is locked.
func (f *memFile) check(op string, write bool) error {
	var err error
	switch {
	case f.n == nil:
		err = os.ErrClosed
	case f.n.names != nil:
		err = errIsDir
	case write && !f.writable:
		err = os.ErrPermission
	default:
		return nil
	}
	return &os.PathError{Op: op, Path: f.name, Err: err}
}

func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.n == nil {
		return &os.PathError{Op: "close", Path: f.name, Err: os.ErrClosed}
	}
	f.n = nil
	return nil
}

func (f *memFile) Read(p []byte) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.check("read", false); err != nil {
		return 0, err
	}
	if f.pos >= len(f.n.data) && len(p) > 0 {
		return 0, io.EOF
	}
	n := copy(p, f.n.data[min(f.pos, len(f.n.data)):])
	f.pos += n
	return n, nil
}

func (f *memFile) ReadAt(p []byte, offset int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.check("read", false); err != nil {
		return 0, err
	}
	n := copy(p, f.n.data[min(offset, int64(len(f.n.data))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) Write(p []byte) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.check("write", true); err != nil {
		return 0, err
	}
	f.n.put(f.pos, p)
	f.pos += len(p)
	return len(p), nil
}

func (f *memFile) WriteAt(p []byte, offset int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.check("write", true); err != nil {
		return 0, err
	}
	f.n.put(int(offset), p)
	return len(p), nil
}

// put writes bytes at an offset. Bytes between the end and the offset become zeros.
func (n *node) put(offset int, p []byte) {
	if end := offset + len(p); end > len(n.data) {
		had := len(n.data)
		n.data = slices.Grow(n.data, end-had)[:end]
		clear(n.data[had:])
	}
	copy(n.data[offset:], p)
}

func (f *memFile) Preallocate(_, _ int64) error { return nil }

func (f *memFile) Stat() (os.FileInfo, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.n == nil {
		return nil, &os.PathError{Op: "stat", Path: f.name, Err: os.ErrClosed}
	}
	return f.n.info(f.name), nil
}

func (f *memFile) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	switch {
	case f.n == nil:
		return &os.PathError{Op: "sync", Path: f.name, Err: os.ErrClosed}
	case !f.m.crashable:
	case f.n.names != nil:
		f.n.syncedNames = maps.Clone(f.n.names)
	default:
		f.n.syncedData = append(f.n.syncedData[:0], f.n.data...)
	}
	return nil
}

func (f *memFile) SyncData() error { return f.Sync() }

// memInfo describes a file of a [Mem].
type memInfo struct {
	name  string
	size  int64
	isDir bool
}

func (n *node) info(name string) os.FileInfo {
	return memInfo{path.Base(clean(name)), int64(len(n.data)), n.names != nil}
}

func (i memInfo) Name() string     { return i.name }
func (i memInfo) Size() int64      { return i.size }
func (memInfo) ModTime() time.Time { return time.Time{} }
func (i memInfo) IsDir() bool      { return i.isDir }
func (memInfo) Sys() any           { return nil }

func (i memInfo) Mode() os.FileMode {
	if i.isDir {
		return os.ModeDir | 0o755
	}
	return 0o644
}
