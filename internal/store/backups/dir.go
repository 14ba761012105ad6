package backups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/braidlog/braid/internal/durable"
	"github.com/braidlog/braid/internal/vfs"
)

const (
	// partPrefix begins the names of files of backups that are not complete.
	partPrefix = "part-"
	lockName   = "lock"
)

// Dir is a directory to which this process alone adds backups.
type Dir struct {
	Path string
	// Backups are those in the directory, by number.
	Backups []Info

	lock io.Closer
}

// Open opens a directory, which is made if it does not exist, and removes backups that earlier processes did not
// complete. It must be closed. It fails while another process has it open.
func Open(path string) (*Dir, error) {
	if err := durable.MakeDir(vfs.OS, path, 0o700); err != nil {
		return nil, err
	}
	lock, err := vfs.OS.Lock(filepath.Join(path, lockName))
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) && failed.Op == "lock" {
		return nil, fmt.Errorf("%s is in use by another backup: %w", path, err)
	} else if err != nil {
		return nil, err
	}
	d := &Dir{Path: path, lock: lock}
	if err := d.clean(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if d.Backups, err = List(path); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Close ends the use of the directory.
func (d *Dir) Close() error { return d.lock.Close() }

func (d *Dir) clean() error {
	names, err := os.ReadDir(d.Path)
	for _, name := range names {
		if strings.HasPrefix(name.Name(), partPrefix) {
			err = errors.Join(err, os.Remove(filepath.Join(d.Path, name.Name())))
		}
	}
	return err
}

// Increments returns the number of increments since the newest whole backup.
func (d *Dir) Increments() int { return len(d.Backups) - 1 - lastFull(d.Backups) }

// Newest returns the newest backup; nil: there is none.
func (d *Dir) Newest() *Info {
	if len(d.Backups) == 0 {
		return nil
	}
	return &d.Backups[len(d.Backups)-1]
}

// Add writes a backup, reads it again and checks it, and gives it its name if keep returns true. Otherwise, and after
// an error, the directory is as before, and added is nil.
func (d *Dir) Add(ctx context.Context, kind string, cluster uint64, write func(io.Writer) error,
	keep func(*Info) (bool, error)) (added *Info, err error) {
	part, err := os.CreateTemp(d.Path, partPrefix)
	if err != nil {
		return nil, err
	}
	defer os.Remove(part.Name()) // of no effect once it has its final name
	if err := write(part); err != nil {
		_ = part.Close()
		return nil, err
	}
	if err := errors.Join(part.Sync(), part.Close()); err != nil {
		return nil, err
	}
	i := &Info{Number: 1, Kind: kind, Cluster: strconv.FormatUint(cluster, 16), File: filepath.Base(part.Name())}
	if newest := d.Newest(); newest != nil {
		i.Number = newest.Number + 1
	}
	if err = i.read(d.Path); err == nil {
		err = i.check(ctx, d.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("the backup is not complete: %w", err)
	}
	if stays, err := keep(i); err != nil || !stays {
		return nil, err
	}
	i.File = nameOf(i.Number, kind, cluster)
	if err := os.Rename(part.Name(), i.Path(d.Path)); err != nil {
		return nil, err
	}
	d.Backups = append(d.Backups, *i)
	return i, durable.SyncDir(vfs.OS, d.Path)
}

// Prune removes the oldest backups so that a number of whole ones stay, with the increments that continue them. It
// removes an increment before the backups that it continues, so that those that are left can be restored at any time.
func (d *Dir) Prune(keep int) (removed []Info, err error) {
	full, first := 0, len(d.Backups)
	for first > 0 && full < keep {
		first--
		if i := &d.Backups[first]; i.Kind == Full && i.Problem == "" {
			full++
		}
	}
	if full < keep {
		return nil, nil
	}
	for n := first - 1; n >= 0; n-- {
		if err := os.Remove(d.Backups[n].Path(d.Path)); err != nil {
			return removed, err
		}
		removed = append(removed, d.Backups[n])
	}
	d.Backups = d.Backups[first:]
	return removed, durable.SyncDir(vfs.OS, d.Path)
}
