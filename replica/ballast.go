package replica

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A ballast is a file of no use but its size: a member that starts on a full disk gives it up, and
// has room for the small files that a start replaces. Once it runs it takes the room back, as
// much as there is.
const (
	ballastFile  = "ballast"
	ballastBytes = 1 << 20
	ballastLeast = 64 << 10
)

// dropBallast gives up the ballast if the disk has no more than that.
func dropBallast(fs vfs.FS, dir string) error {
	usage, err := fs.GetDiskUsage(dir)
	if err != nil || usage.AvailBytes > ballastBytes {
		return nil // it does not tell, or there is room
	}
	if err := fs.Remove(filepath.Join(dir, ballastFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// keepBallast makes the ballast if it is missing, as large as there is room for. That it fails
// is no reason not to start.
func keepBallast(fs vfs.FS, dir string) error {
	name := filepath.Join(dir, ballastFile)
	if _, err := fs.Stat(name); err == nil {
		return nil
	}
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	for size := int64(ballastBytes); size >= ballastLeast; size /= 2 {
		if err = f.Preallocate(0, size); err == nil {
			return f.Close()
		}
	}
	return errors.Join(err, f.Close(), fs.Remove(name))
}
