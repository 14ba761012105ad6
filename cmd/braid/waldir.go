package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// placeLog gives the log the directory of --wal-dir, if that is given: the log's directory in the data directory becomes
// a link to it, so all that reads a data directory finds it. A log that is elsewhere is refused.
func placeLog(dataDir, walDir string) error {
	link := filepath.Join(dataDir, logDir)
	at, err := os.Readlink(link)
	switch {
	case err == nil && walDir == "":
		return checkLog(link, at)
	case walDir == "":
		return nil
	}
	want, absErr := filepath.Abs(walDir)
	if absErr != nil {
		return fmt.Errorf("--wal-dir: %w", absErr)
	}
	switch {
	case err == nil && at == want:
		return checkLog(link, at)
	case err == nil:
		return fmt.Errorf("--wal-dir %s: the log is in %s. Move its files, and remove the link %s", want, at, link)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--wal-dir %s: the log is in %s. Move this directory there, and start again", want, link)
	}
	return linkLog(dataDir, link, want)
}

// checkLog refuses to begin with an empty log where the one that was there is missing.
func checkLog(link, at string) error {
	if _, err := os.Stat(link); err != nil {
		return fmt.Errorf("the log of this member is in %s, which cannot be read: is its disk mounted? (%w)", at, err)
	}
	return nil
}

// linkLog makes the directory of a log that is to begin, or was moved there, and the link to it.
func linkLog(dataDir, link, at string) error {
	for _, dir := range []string{dataDir, at} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("--wal-dir: %w", err)
		}
	}
	if err := os.Symlink(at, link); err != nil {
		return fmt.Errorf("--wal-dir: %w", err)
	}
	dir, err := os.Open(dataDir)
	if err == nil {
		err = errors.Join(dir.Sync(), dir.Close())
	}
	if err != nil {
		return fmt.Errorf("--wal-dir: %w", err)
	}
	return nil
}
