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

// MakeDir creates a directory and all missing parents durably. An existing directory may have been created just
// before a crash. So the entry of the lowest existing directory of the path is synced too; an earlier call has synced
// everything above it. After an error some directories may exist; a retry is safe.
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

// foreign reports whether a directory that could not be synced is one in which this process has created nothing: it
// has no permission, or the file system is read-only, or does not sync directories, such as a root on squashfs with
// the data's disk mounted below.
func foreign(err error) bool {
	for _, e := range []error{iofs.ErrPermission, syscall.EROFS, syscall.EINVAL, syscall.EOPNOTSUPP} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// SyncDir makes the names in a directory durable.
func SyncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
