package vfs

import (
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"sync"
	"syscall"
)

// Mem is a file system in memory. Names are those of package path, from its root. Its methods may be called
// concurrently.
type Mem struct {
	mu   sync.Mutex // guards everything, including the contents of files
	root *node
	// crashable: it tracks what was synced, see Crash.
	crashable bool
	locked    map[string]bool // by cleaned name
}

// node is a file or a directory. A file may have several names, and be open without one.
type node struct {
	names map[string]*node // of a directory; nil: it is a file
	data  []byte
	// syncedNames and syncedData are the state at the last sync, in a crashable file system.
	syncedNames map[string]*node
	syncedData  []byte
}

func newDir() *node { return &node{names: map[string]*node{}} }

// NewMem returns an empty file system.
func NewMem() *Mem { return &Mem{root: newDir(), locked: map[string]bool{}} }

var (
	errNotDir   = errors.New("not a directory")
	errIsDir    = errors.New("is a directory")
	errNotEmpty = errors.New("directory not empty")
)

func clean(name string) string { return path.Clean("/" + name) }

// find returns the file or directory of a name; nil: there is none.
func (m *Mem) find(name string) *node {
	n := m.root
	for _, part := range parts(name) {
		if n = n.names[part]; n == nil {
			return nil
		}
	}
	return n
}

// parts are the names on a path from the root on.
func parts(name string) (all []string) {
	for name = clean(name); name != "/"; name = path.Dir(name) {
		all = append(all, path.Base(name))
	}
	slices.Reverse(all)
	return all
}

// dirOf returns the parent directory of a name, and the last part of the name.
func (m *Mem) dirOf(op, name string) (dir *node, base string, err error) {
	name = clean(name)
	dir = m.find(path.Dir(name))
	switch {
	case dir == nil:
		return nil, "", &os.PathError{Op: op, Path: name, Err: os.ErrNotExist}
	case dir.names == nil:
		return nil, "", &os.PathError{Op: op, Path: name, Err: errNotDir}
	case name == "/":
		return nil, "", &os.PathError{Op: op, Path: name, Err: errIsDir}
	}
	return dir, path.Base(name), nil
}

// Create implements [FS].
func (m *Mem) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.create(name)
}

func (m *Mem) create(name string) (File, error) {
	dir, base, err := m.dirOf("open", name)
	if err != nil {
		return nil, err
	}
	if old := dir.names[base]; old != nil && old.names != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: errIsDir}
	}
	n := &node{}
	dir.names[base] = n
	return &memFile{m: m, n: n, name: name, writable: true}, nil
}

// Open implements [FS].
func (m *Mem) Open(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(name)
	if n == nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrNotExist}
	}
	return &memFile{m: m, n: n, name: name}, nil
}

// OpenDir implements [FS].
func (m *Mem) OpenDir(name string) (File, error) { return m.Open(name) }

// OpenReadWrite implements [FS].
func (m *Mem) OpenReadWrite(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(name)
	switch {
	case n == nil:
		return m.create(name)
	case n.names != nil:
		return nil, &os.PathError{Op: "open", Path: name, Err: errIsDir}
	}
	return &memFile{m: m, n: n, name: name, writable: true}, nil
}

// Remove implements [FS].
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.dirOf("remove", name)
	if err != nil {
		return err
	}
	n := dir.names[base]
	switch {
	case n == nil:
		return &os.PathError{Op: "remove", Path: name, Err: os.ErrNotExist}
	case len(n.names) > 0:
		return &os.PathError{Op: "remove", Path: name, Err: errNotEmpty}
	}
	delete(dir.names, base)
	return nil
}

// RemoveAll removes a file, or a directory with its contents. A missing name is no error.
func (m *Mem) RemoveAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.dirOf("remove", name)
	if isMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	delete(dir.names, base)
	return nil
}

// Rename implements [FS].
func (m *Mem) Rename(oldname, newname string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, old, err := m.dirOf("rename", oldname)
	if err != nil {
		return err
	}
	to, base, err := m.dirOf("rename", newname)
	if err != nil {
		return err
	}
	n := from.names[old]
	if n == nil {
		return &os.PathError{Op: "rename", Path: oldname, Err: os.ErrNotExist}
	}
	delete(from.names, old)
	to.names[base] = n
	return nil
}

// MkdirAll implements [FS].
func (m *Mem) MkdirAll(dir string, _ os.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.root
	for _, part := range parts(dir) {
		if n.names[part] == nil {
			n.names[part] = newDir()
		}
		if n = n.names[part]; n.names == nil {
			return &os.PathError{Op: "mkdir", Path: dir, Err: errNotDir}
		}
	}
	return nil
}

// List implements [FS]. The names are sorted.
func (m *Mem) List(dir string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(dir)
	switch {
	case n == nil:
		return nil, &os.PathError{Op: "open", Path: dir, Err: os.ErrNotExist}
	case n.names == nil:
		return nil, &os.PathError{Op: "open", Path: dir, Err: errNotDir}
	}
	return slices.Sorted(maps.Keys(n.names)), nil
}

// Stat implements [FS].
func (m *Mem) Stat(name string) (os.FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(name)
	if n == nil {
		return nil, &os.PathError{Op: "stat", Path: name, Err: os.ErrNotExist}
	}
	return n.info(name), nil
}

// Lock implements [FS].
func (m *Mem) Lock(name string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := clean(name)
	if m.locked[key] {
		return nil, &os.PathError{Op: "lock", Path: name, Err: syscall.EAGAIN}
	}
	if m.find(name) == nil {
		if _, err := m.create(name); err != nil {
			return nil, err
		}
	}
	m.locked[key] = true
	return &memLock{m, key}, nil
}

type memLock struct {
	m   *Mem
	key string
}

func (l *memLock) Close() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	delete(l.m.locked, l.key)
	return nil
}

// FreeBytes implements [FS]: it is not known.
func (*Mem) FreeBytes(string) (uint64, error) { return 0, errors.ErrUnsupported }
