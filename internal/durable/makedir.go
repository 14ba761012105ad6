package durable

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/braidlog/braid/internal/vfs"
)

// MakeDir makes a directory and all missing directories above it, and makes durable that they are there. What is there
// already may have been made a moment before a crash. So its entry is synced too: that of the lowest directory of the
// path that is there, above which an earlier call has synced everything. An error says nothing of what was made; a
// retry is safe.
func MakeDir(fs vfs.FS, dir string, perm os.FileMode) error {
	var missing []string // the lowest first
	at := dir
	for ; ; at = filepath.Dir(at) {
		_, err := fs.Stat(at)
		if err == nil || at == filepath.Dir(at) {
			break
		}
		if !errors.Is(err, iofs.ErrNotExist) {
			return fmt.Errorf("make %s: %w", dir, err)
		}
		missing = append(missing, at)
	}
	if err := SyncDir(fs, filepath.Dir(at)); err != nil && !foreign(err) {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	for i := len(missing) - 1; i >= 0; i-- {
		d := missing[i]
		if err := fs.MkdirAll(d, perm); err != nil {
			return fmt.Errorf("make %s: %w", d, err)
		}
		if err := SyncDir(fs, filepath.Dir(d)); err != nil {
			return fmt.Errorf("make %s: %w", d, err)
		}
	}
	return nil
}

// foreign reports whether a directory that could not be synced is one in which this process has made nothing: it may
// not look there, or the file system cannot be written, or syncs no directories, as a root on squashfs with the data's
// disk below.
func foreign(err error) bool {
	for _, e := range []error{iofs.ErrPermission, syscall.EROFS, syscall.EINVAL, syscall.EOPNOTSUPP} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// SyncDir makes durable which names a directory has.
func SyncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
