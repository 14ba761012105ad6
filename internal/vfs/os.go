package vfs

import (
	"errors"
	"os"
)

// OS is the operating system's file system.
var OS FS = osFS{}

type osFS struct{}

// Create creates a new file even if there is one: it removes the old one, and uses O_EXCL.
func (osFS) Create(name string) (File, error) {
	for {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil {
			return &osFile{f}, nil
		}
		if !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		if err := os.Remove(name); err != nil && !isMissing(err) {
			return nil, err
		}
	}
}

func (osFS) Open(name string) (File, error) { return open(name, os.O_RDONLY) }

func (osFS) OpenReadWrite(name string) (File, error) { return open(name, os.O_RDWR|os.O_CREATE) }

func (osFS) OpenDir(name string) (File, error) { return open(name, os.O_RDONLY) }

func open(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag, 0o666)
	if err != nil {
		return nil, err
	}
	return &osFile{f}, nil
}

func (osFS) Remove(name string) error { return os.Remove(name) }

func (osFS) Rename(oldname, newname string) error { return os.Rename(oldname, newname) }

func (osFS) MkdirAll(dir string, perm os.FileMode) error { return os.MkdirAll(dir, perm) }

func (osFS) List(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	return names, errors.Join(err, d.Close())
}

func (osFS) Stat(name string) (os.FileInfo, error) { return os.Stat(name) }

// osFile is a file or directory of the operating system.
type osFile struct{ *os.File }

// failed names the file in an error of a system call.
func (f *osFile) failed(call string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: call, Path: f.Name(), Err: err}
}
