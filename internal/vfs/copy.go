package vfs

import (
	"errors"
	"io"
	"path/filepath"
)

// Copy copies a file, or a directory with all that is in it, to a name in another file system or the same. Nothing is
// synced.
func Copy(from FS, name string, to FS, target string) error {
	info, err := from.Stat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return copyFile(from, name, to, target)
	}
	if err := to.MkdirAll(target, 0o755); err != nil {
		return err
	}
	names, err := from.List(name)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := Copy(from, filepath.Join(name, n), to, filepath.Join(target, n)); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from FS, name string, to FS, target string) error {
	src, err := from.Open(name)
	if err != nil {
		return err
	}
	dst, err := to.Create(target)
	if err != nil {
		return errors.Join(err, src.Close())
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close(), src.Close())
}
