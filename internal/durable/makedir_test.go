package durable_test

import (
	"errors"
	iofs "io/fs"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/durable"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/vfs/errorfs"
)

var errStop = errors.New("the process ends here")

// However earlier calls for a directory ended, after one that returned nil the directory, and what was synced in it,
// survive a power failure.
func TestADirectoryOutlivesAPowerLoss(t *testing.T) {
	const dir = "/a/b/c/d"
	for _, exists := range []string{"/", "/a/b", dir} { // as durable as before
		for stops := range 12 {
			mem := vfs.NewCrashableMem()
			require.NoError(t, durable.MakeDir(mem, exists, 0o700))
			ops := 0
			dying := errorfs.Wrap(mem, errorfs.InjectorFunc(func(o errorfs.Op) error {
				if ops++; ops > stops {
					return errStop
				}
				return nil
			}))
			_ = durable.MakeDir(dying, dir, 0o700)
			require.NoError(t, durable.MakeDir(mem, dir, 0o700))
			f, err := mem.Create(filepath.Join(dir, "file"))
			require.NoError(t, err)
			require.NoError(t, errors.Join(f.Sync(), f.Close(), durable.SyncDir(mem, dir)))
			_, err = mem.Crash(0, nil).Stat(filepath.Join(dir, "file"))
			require.NoError(t, err, "made below %s, after a call that ended with step %d", exists, stops)
		}
	}
}

// A directory without permission, or on a read-only file system, was not created by this process.
func TestADirectoryBelowAForeignOne(t *testing.T) {
	mem := vfs.NewMem()
	require.NoError(t, durable.MakeDir(mem, "/closed/mine", 0o700))
	for op, why := range map[errorfs.OpKind][]error{
		errorfs.OpOpenDir:  {iofs.ErrPermission},
		errorfs.OpFileSync: {syscall.EINVAL, syscall.EROFS, syscall.EOPNOTSUPP},
	} {
		for _, err := range why {
			closed := errorfs.Wrap(mem, errorfs.InjectorFunc(func(o errorfs.Op) error {
				if o.Kind == op && o.Path == "/closed" {
					return &iofs.PathError{Op: "sync", Path: o.Path, Err: err}
				}
				return nil
			}))
			require.NoError(t, durable.MakeDir(closed, "/closed/mine/data", 0o700))
			require.NoError(t, durable.MakeDir(closed, "/closed/mine", 0o700))
			require.ErrorIs(t, durable.MakeDir(closed, "/closed/other", 0o700), err)
			require.NoError(t, mem.RemoveAll("/closed/mine/data"))
			require.NoError(t, mem.RemoveAll("/closed/other"))
		}
	}
}
