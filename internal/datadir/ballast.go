package datadir

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/braidlog/braid/internal/sys"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
)

// The ballast is a file that only takes space. When the disk is full, it is removed, to have space for the small files
// that a start, or a link to a member that restarted, replaces. Then the file is created again, as large as the disk
// allows. It is only a little smaller than before, so this is possible many times.
const (
	ballastFile  = "ballast"
	ballastBytes = 1 << 20
	ballastStep  = 16 << 10 // the smallest ballast, and the difference between two sizes
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

// KeepBallast creates the ballast if it is missing, as large as the free space allows, up to ballastBytes. A smaller
// one grows. The member starts even if this fails.
func KeepBallast(fs vfs.FS, dir string) error {
	name := filepath.Join(dir, ballastFile)
	_, err := fs.Stat(name)
	exists := err == nil
	f, err := fs.OpenReadWrite(name)
	if err != nil {
		return err
	}
	for size := int64(ballastBytes); size >= ballastStep; size -= ballastStep {
		if err = sys.Again(func() error { return f.Preallocate(0, size) }); err == nil && exists {
			return f.Close() // if the power fails now, it may be as small as before
		} else if err == nil {
			return errors.Join(f.Sync(), f.Close(), syncDir(fs, dir))
		}
	}
	return errors.Join(err, f.Close(), fs.Remove(name))
}

// withBallast calls write, which replaces a small file. If the disk is full, it removes the ballast, calls write again,
// and creates the ballast again. The old file's space is free by then, so the ballast is hardly smaller than before.
// Calls must not overlap.
func withBallast(fs vfs.FS, dir string, write func() error) error {
	err := write()
	if full := (*wal.FullError)(nil); !errors.As(err, &full) || sys.NoDescriptor(full) {
		return err
	}
	if fs.Remove(filepath.Join(dir, ballastFile)) != nil {
		return err
	}
	err = write()
	_ = KeepBallast(fs, dir) // best effort: without it the next start has no space
	return err
}
