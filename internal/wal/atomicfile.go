package wal

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/braidlog/braid/internal/vfs"
)

// WriteFile replaces a small file durably and in one step: after a crash it has the old bytes or the new ones, and
// the new ones if WriteFile had returned nil. If the disk is full, or the process has no descriptor left, it returns
// *FullError, and the file holds the old bytes. It writes a temporary file, syncs it, renames it and syncs the
// directory, which it opens before any change. Calls for one name must not overlap.
func WriteFile(fs vfs.FS, name string, data []byte) error {
	temp, dir := name+tempSuffix, filepath.Dir(name)
	names, err := fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("wal: write %s: %w", name, noSpace(dir, err, int64(len(data))))
	}
	if err := errors.Join(replace(fs, temp, name, names, data), names.Close()); err != nil {
		return fmt.Errorf("wal: write %s: %w", name, err)
	}
	return nil
}

// replace is WriteFile with the open directory of the file.
func replace(fs vfs.FS, temp, name string, names vfs.File, data []byte) error {
	if err := writeTemp(fs, temp, data); err != nil {
		// Best effort: the next WriteFile of this name replaces it.
		_ = fs.Remove(temp)
		return noSpace(filepath.Dir(name), err, int64(len(data)))
	}
	if err := fs.Rename(temp, name); err != nil {
		return err
	}
	return names.Sync()
}

func writeTemp(fs vfs.FS, temp string, data []byte) error {
	f, err := fs.Create(temp)
	if err != nil {
		return err
	}
	if len(data) > 0 {
		err = writeAt(f, data, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// ReadFile returns the bytes of a file of at most limit bytes.
func ReadFile(fs vfs.FS, name string, limit int64) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, &TooLargeError{Bytes: info.Size(), Limit: limit}
	}
	b := make([]byte, info.Size())
	n, err := readFull(f, b, 0)
	return b[:n], err
}
