package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/durable"
	"github.com/braidlog/braid/internal/settings"
	"github.com/braidlog/braid/internal/store"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/server"
)

// With --force-new-cluster a member that is left of a cluster begins a new one of itself, with everything that it has:
// "braid salvage" of its directory, and "braid restore" into the same one. What was there is kept in a folder. The
// new cluster has another id, so that members of the former one are not mistaken for its members.
//
// The order makes each crash harmless. The new database is made in forceWork. Then forcedFile is written: from now on
// the new cluster begins, and each start completes the change. The last step moves the new database into its place.

// Names in the data directory.
const (
	forcedFile  = "forced.json"              // the cluster that began
	forceWork   = "force-new-cluster.tmp"    // the new database, until it is in its place
	forceBefore = "before-force-new-cluster" // log and database of the member of the former cluster
)

// forced is the cluster of one that began.
type forced struct {
	Cluster  uint64         `json:"cluster"`
	Member   braid.MemberID `json:"member"`
	Name     string         `json:"name"`
	PeerURLs []string       `json:"peer_urls"`
}

func (f *forced) identity() identity {
	return identity{self: f.Member, cluster: f.Cluster,
		members: []braid.Member{{ID: f.Member, Name: f.Name, PeerURLs: f.PeerURLs}}}
}

// forceNew begins the new cluster if it is asked for and has not begun, and completes one that has. It returns nil if
// this directory is of no such cluster.
func forceNew(ctx context.Context, s *settings.Settings, logger *slog.Logger) (*identity, error) {
	f, err := readForced(s.DataDir)
	if err == nil && f != nil && !holdsForced(s.DataDir) {
		logger.Warn("a new cluster was forced here, and everything of it was deleted since", "cluster",
			fmt.Sprintf("%x", f.Cluster))
		f, err = nil, os.Remove(filepath.Join(s.DataDir, forcedFile))
	}
	if err == nil && f == nil && s.ForceNew {
		f, err = prepareForced(ctx, s, logger)
	} else if f != nil && s.ForceNew {
		logger.Warn("--force-new-cluster does nothing: this member has begun a new cluster already", "cluster",
			fmt.Sprintf("%x", f.Cluster))
	}
	if err == nil && f != nil {
		err = completeForced(s.DataDir)
	}
	if err != nil {
		return nil, fmt.Errorf("--force-new-cluster: %w", err)
	}
	if f == nil {
		return nil, nil
	}
	who := f.identity()
	return &who, nil
}

// holdsForced reports whether anything is left of the cluster that began: its new database, or what became of it.
func holdsForced(dir string) bool {
	for _, name := range []string{filepath.Join(forceWork, storeDir), storeDir, logDir} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

func readForced(dir string) (*forced, error) {
	file := filepath.Join(dir, forcedFile)
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	f := new(forced)
	if err == nil {
		err = json.Unmarshal(content, f)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", file, err)
	}
	return f, nil
}

// prepareForced makes the new database, and decides that the new cluster begins. It returns nil if the directory has no
// member: then it founds a cluster anyway.
func prepareForced(ctx context.Context, s *settings.Settings, logger *slog.Logger) (*forced, error) {
	kept, found, err := readIdentity(s.DataDir)
	if err != nil || !found {
		return nil, err
	}
	before := filepath.Join(s.DataDir, forceBefore)
	if _, err := os.Lstat(before); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s exists: move it away", before)
	}
	if s.WALDir != "" {
		return nil, errors.New("the log is in --wal-dir: use braid salvage and braid restore")
	}
	work := filepath.Join(s.DataDir, forceWork)
	report, err := salvageAlone(ctx, s.DataDir, work)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(work))
	}
	f := &forced{Member: braid.MemberIDOf(s.Name, s.Token), Name: s.Name, PeerURLs: s.AdvertisePeer}
	f.Cluster = braid.ClusterIDOf(f.identity().members, fmt.Sprintf("%s after %x", s.Token, kept.cluster))
	content, err := json.Marshal(f)
	if err == nil {
		err = wal.WriteFile(vfs.OS, filepath.Join(s.DataDir, forcedFile), content)
	}
	logger.Warn("this member begins a new cluster of itself", "cluster", fmt.Sprintf("%x", f.Cluster), "former",
		fmt.Sprintf("%x", kept.cluster), "revision", report.Revision, "undecided", report.Behind, "kept", before)
	return f, err
}

// salvageAlone makes a database of what a member has, in a new directory.
func salvageAlone(ctx context.Context, dataDir, work string) (report server.SalvageReport, err error) {
	if err := errors.Join(os.RemoveAll(work), durable.MakeDir(vfs.OS, work, 0o700)); err != nil {
		return report, err
	}
	file := filepath.Join(work, "rest.db")
	if report, err = salvageInto(ctx, []string{dataDir}, file); err != nil {
		return report, err
	}
	if n := len(report.Lost); n > 0 {
		return report, fmt.Errorf("%d large values cannot be made of what this member has of them alone: use braid salvage "+
			"with the directories of others", n)
	}
	err = store.Import(file, filepath.Join(work, storeDir), store.ImportOptions{})
	return report, errors.Join(err, os.Remove(file))
}

// completeForced moves the former log and database away, and the new database into its place.
func completeForced(dir string) error {
	work, before := filepath.Join(dir, forceWork), filepath.Join(dir, forceBefore)
	made := filepath.Join(work, storeDir)
	if _, err := os.Lstat(made); err == nil {
		if err := durable.MakeDir(vfs.OS, before, 0o700); err != nil {
			return err
		}
		for _, part := range []string{logDir, storeDir} {
			if err := moveOnce(filepath.Join(dir, part), filepath.Join(before, part)); err != nil {
				return err
			}
		}
		if err := errors.Join(durable.SyncDir(vfs.OS, before), durable.SyncDir(vfs.OS, dir)); err != nil {
			return err // the new database must not be found together with the former log
		}
		if err := os.Rename(made, filepath.Join(dir, storeDir)); err != nil {
			return err
		}
		if err := errors.Join(durable.SyncDir(vfs.OS, dir), durable.SyncDir(vfs.OS, work)); err != nil {
			return err
		}
	}
	return os.RemoveAll(work)
}

// moveOnce moves a directory unless an earlier start has, or it was deleted.
func moveOnce(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	if err := os.Rename(from, to); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
