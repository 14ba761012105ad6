package durable

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// MakeDir makes a directory and all missing directories above it, and makes durable that they are there. What is there
// already may have been made a moment before a crash. So its entry is synced too: that of the lowest directory of the
// path that is there, above which an earlier call has synced everything. An error says nothing of what was made; a
// retry is safe.
func MakeDir(fs vfs.FS, dir string, perm os.FileMode) error {
	var missing []string // the lowest first
	at := dir
	for ; ; at = fs.PathDir(at) {
		_, err := fs.Stat(at)
		if err == nil || at == fs.PathDir(at) {
			break
		}
		if !errors.Is(err, iofs.ErrNotExist) {
			return fmt.Errorf("make %s: %w", dir, err)
		}
		missing = append(missing, at)
	}
	if err := SyncDir(fs, fs.PathDir(at)); err != nil && !errors.Is(err, iofs.ErrPermission) { // then it was not made by us
		return fmt.Errorf("make %s: %w", dir, err)
	}
	for i := len(missing) - 1; i >= 0; i-- {
		d := missing[i]
		if err := fs.MkdirAll(d, perm); err != nil {
			return fmt.Errorf("make %s: %w", d, err)
		}
		if err := SyncDir(fs, fs.PathDir(d)); err != nil {
			return fmt.Errorf("make %s: %w", d, err)
		}
	}
	return nil
}

// SyncDir makes durable which names a directory has.
func SyncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
