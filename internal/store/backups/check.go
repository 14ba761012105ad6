package backups

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
)

// Check is List with every file read to its end and compared with its digest. It stops with ctx's error when ctx is
// done.
func Check(ctx context.Context, dir string) ([]Info, error) {
	all, err := List(dir)
	if err == nil {
		err = check(ctx, dir, all)
	}
	if err != nil {
		return nil, err
	}
	link(all)
	return all, nil
}

// CheckNewest is [Check] of the newest backup and of those that it continues. The problems are noted in d.Backups.
func (d *Dir) CheckNewest(ctx context.Context) error {
	err := check(ctx, d.Path, d.Backups[max(lastFull(d.Backups), 0):])
	link(d.Backups)
	return err
}

// check notes the problems of backups that have none yet.
func check(ctx context.Context, dir string, all []Info) error {
	for n := range all {
		if all[n].Problem != "" {
			continue
		}
		if err := all[n].check(ctx, dir); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			all[n].Problem = err.Error()
		}
	}
	return nil
}

// check compares a file with its digest, which is the end of the file for both kinds.
func (i *Info) check(ctx context.Context, dir string) error {
	f, err := os.Open(i.Path(dir))
	if err != nil {
		return err
	}
	defer f.Close()
	digest := sha256.New()
	if _, err := io.Copy(digest, &reader{ctx, io.LimitReader(f, i.Bytes-sha256.Size)}); err != nil {
		return err
	}
	if sum := hex.EncodeToString(digest.Sum(nil)); sum != i.SHA256 {
		return fmt.Errorf("%s is damaged: its SHA-256 is %s, should be %s", i.File, sum, i.SHA256)
	}
	return nil
}

// reader stops reading when its context is done.
type reader struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
