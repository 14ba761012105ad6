package datadir

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/braidlog/braid/internal/sys"
	"github.com/braidlog/braid/internal/vfs"
)

// A ballast is a file that only takes space. A member that starts on a full disk removes it, so that
// there is space for the small files that a start replaces. After the start the member makes the
// file again, as large as the disk allows: so it is little smaller than before, and many starts in a
// row are possible.
const (
	ballastFile  = "ballast"
	ballastBytes = 1 << 20
	ballastLeast = 64 << 10
)

// DropBallast removes the ballast if no more bytes are free on disk than a ballast has.
func DropBallast(fs vfs.FS, dir string) error {
	free, err := fs.FreeBytes(dir)
	if err != nil || free > ballastBytes {
		return nil // the size is not known, or there is enough space
	}
	if err := fs.Remove(filepath.Join(dir, ballastFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// KeepBallast makes the ballast if it is missing, as large as the free space allows, up to
// ballastBytes. The member starts even if this fails.
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
