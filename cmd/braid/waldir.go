package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/braidlog/braid/internal/durable"
	"github.com/braidlog/braid/internal/vfs"
)

// walMark is a file in the directory of --wal-dir. Where it is missing, the directory may be the place at which a disk
// is to be mounted.
const walMark = "braid-wal"

// placeLog gives the log the directory of --wal-dir, if that is given: the log's directory in the data directory
// becomes a link to it, so all that reads a data directory finds it. A log that is elsewhere is refused.
func placeLog(dataDir, walDir string) error {
	link := filepath.Join(dataDir, logDir)
	at, err := os.Readlink(link)
	linked := err == nil
	if walDir == "" {
		if linked {
			return checkLog(dataDir, at)
		}
		return nil
	}
	want, err := filepath.Abs(walDir)
	if err != nil {
		return fmt.Errorf("--wal-dir: %w", err)
	}
	_, err = os.Stat(link)
	switch {
	case inside(link, want) || inside(want, dataDir):
		return fmt.Errorf("--wal-dir %s: it is the log's place in the data directory, or around it: choose another one", want)
	case linked && sameDir(at, want):
		return checkLog(dataDir, at)
	case linked && !hasBegun(dataDir) && !hasLog(link): // of a start that failed
		if err := os.Remove(link); err != nil {
			return fmt.Errorf("--wal-dir: %w", err)
		}
	case linked:
		return fmt.Errorf("--wal-dir %s: the log is in %s. Move its files there, and remove the link %s", want, at, link)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--wal-dir %s: the log is in %s. Move its files, so that member.json is in %s, and remove the "+
			"directory", want, link, want)
	case hasBegun(dataDir) && !hasLog(want):
		return fmt.Errorf("--wal-dir %s: there is no log of this member, which has one: is the disk mounted?", want)
	}
	return linkLog(dataDir, link, want)
}

// inside reports whether a path is the directory or in it.
func inside(dir, path string) bool {
	from, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	to, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(from, to)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// sameDir reports whether two paths lead to one directory, or are the same text.
func sameDir(a, b string) bool {
	if a == b {
		return true
	}
	left, leftErr := os.Stat(a)
	right, rightErr := os.Stat(b)
	return leftErr == nil && rightErr == nil && os.SameFile(left, right)
}

// hasBegun reports whether a member has begun in a data directory. Its database is there then.
func hasBegun(dataDir string) bool {
	_, err := os.Stat(filepath.Join(dataDir, storeDir, "db"))
	return err == nil
}

// hasLog reports whether a directory is one of a log, perhaps of one that has not begun.
func hasLog(dir string) bool {
	for _, name := range []string{walMark, "member.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// checkLog refuses to begin with an empty log where the one that was there is missing.
func checkLog(dataDir, at string) error {
	link := filepath.Join(dataDir, logDir)
	if _, err := os.Stat(link); err != nil {
		return fmt.Errorf("the log of this member is in %s, which cannot be read: is its disk mounted? (%w)", at, err)
	}
	if hasBegun(dataDir) && !hasLog(link) {
		return fmt.Errorf("the log of this member is in %s, where there is none: is its disk mounted?", at)
	}
	return nil
}

// linkLog makes the directory of a log that is to begin, or was moved there, and the link to it.
func linkLog(dataDir, link, at string) error {
	err := errors.Join(durable.MakeDir(vfs.OS, dataDir, 0o700), durable.MakeDir(vfs.OS, at, 0o700))
	if err == nil {
		err = os.WriteFile(filepath.Join(at, walMark), []byte("The log of "+dataDir+" is here.\n"), 0o600)
	}
	if err == nil {
		err = durable.SyncDir(vfs.OS, at)
	}
	if err == nil {
		err = os.Symlink(at, link)
	}
	if err == nil {
		err = durable.SyncDir(vfs.OS, dataDir)
	}
	if err != nil {
		return fmt.Errorf("--wal-dir: %w", err)
	}
	return nil
}
