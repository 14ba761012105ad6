package datadir

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/braidlog/braid/internal/sys"
	"github.com/braidlog/braid/internal/vfs"
)

// The ballast is a file that only takes space. A member that starts on a full disk removes it, to have space for the
// small files that a start replaces. After the start it creates the file again, as large as the disk allows. The file
// is then only a little smaller, so many such starts are possible.
const (
	ballastFile  = "ballast"
	ballastBytes = 1 << 20
	ballastLeast = 64 << 10
)

// DropBallast removes the ballast if the free space on disk is at most the size of a ballast.
func DropBallast(fs vfs.FS, dir string) error {
	free, err := fs.FreeBytes(dir)
	if err != nil || free > ballastBytes {
		return nil // the free space is not known, or it is enough
	}
	if err := fs.Remove(filepath.Join(dir, ballastFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// KeepBallast creates the ballast if it is missing, as large as the free space allows, up to ballastBytes. The member
// starts even if this fails.
func KeepBallast(fs vfs.FS, dir string) error {
	name := filepath.Join(dir, ballastFile)
	if _, err := fs.Stat(name); err == nil {
		return nil
	}
	f, err := fs.Create(name)
	if err != nil {
		return err
	}
	for size := int64(ballastBytes); size >= ballastLeast; size -= ballastLeast {
		if err = sys.Again(func() error { return f.Preallocate(0, size) }); err == nil {
			return errors.Join(f.Sync(), f.Close(), syncDir(fs, dir))
		}
	}
	return errors.Join(err, f.Close(), fs.Remove(name))
}
