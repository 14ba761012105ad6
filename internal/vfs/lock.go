//go:build unix

package vfs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// held are the locks of this process. The kernel's locks belong to a process: it grants them a second time, and drops
// them when any descriptor of the file is closed.
var held struct {
	sync.Mutex
	files []*fileLock
}

// errHeldHere indicates that this process has the lock.
var errHeldHere = errors.New("lock held by this process")

type fileLock struct {
	file *os.File
	info os.FileInfo
	// path is held too: the holder of the lock opens files by name, and would change the files of the next holder if the
	// directory was removed and created again.
	path string
}

// Lock takes a lock of fcntl(2), which the kernel drops whenever the process ends.
func (osFS) Lock(name string) (io.Closer, error) {
	held.Lock()
	defer held.Unlock()
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	// Without opening it: closing another descriptor would drop the lock.
	info, err := os.Stat(name)
	if err != nil && !isMissing(err) {
		return nil, err
	}
	isHeld := func(l *fileLock) bool { return l.path == path || os.SameFile(l.info, info) }
	if slices.ContainsFunc(held.files, isHeld) {
		return nil, &os.PathError{Op: "lock", Path: name, Err: errHeldHere}
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	all := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &all); err != nil {
		return nil, errors.Join(&os.PathError{Op: "lock", Path: name, Err: err}, f.Close())
	}
	if info, err = f.Stat(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	l := &fileLock{f, info, path}
	held.files = append(held.files, l)
	return l, nil
}

// Close releases the lock. A second call fails and changes nothing.
func (l *fileLock) Close() error {
	held.Lock()
	defer held.Unlock()
	held.files = slices.DeleteFunc(held.files, func(other *fileLock) bool { return other == l })
	return l.file.Close()
}
