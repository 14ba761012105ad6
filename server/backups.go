package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"

	"github.com/braidlog/braid/internal/store"
	"github.com/braidlog/braid/internal/store/backups"
)

// BackupOptions are the options of [Backup].
type BackupOptions struct {
	// Dir is a directory of backups of one cluster. It is made if it does not exist.
	Dir string
	// Full makes a whole backup, also if an increment is possible.
	Full bool
	// Increments is the number of increments after which the next backup is a whole one. 0: any number.
	Increments int
	// Keep is the number of whole backups that stay, with their increments, when this backup is complete. Older ones
	// are removed. 0: all stay.
	Keep int
	// Progress is called after each message of the member, if it is not nil. It must return soon.
	Progress func(BackupProgress)
}

// BackupProgress is the progress of a backup.
type BackupProgress struct {
	Kind string
	// Bytes is the number of bytes received so far, of Total; 0: Total is not known.
	Bytes, Total int64
}

// BackupInfo describes a backup in a directory.
type BackupInfo = backups.Info

// BackupMade is the outcome of [Backup].
type BackupMade struct {
	// Backup is the newest one in the directory. Unchanged: nothing was added, because the cluster has not changed
	// since an earlier backup, which is Backup.
	Backup    BackupInfo `json:"backup"`
	Unchanged bool       `json:"unchanged,omitempty"`
	// Full is the reason why it is a whole backup; "": it is an increment.
	Full string `json:"full,omitempty"`
	// Trimmed is the revision up to which history was compacted since the backup before; 0: it was not compacted. The
	// increment then lists the older history that is left.
	Trimmed int64 `json:"trimmed,omitempty"`
	// Removed are the older backups that were removed.
	Removed []BackupInfo `json:"removed,omitempty"`
	Seconds float64      `json:"seconds"`
}

// ErrOtherCluster refuses to add a backup of one cluster to those of another. A retry is of no use.
var ErrOtherCluster = errors.New("braid: backup: the directory has backups of another cluster")

// Backup adds a backup of a member's cluster to a directory. The first one is whole: a snapshot as etcdctl saves it.
// The next ones are increments, which have the changes since the backup before. Each has the state at one revision,
// behind all writes that were acknowledged before. With auth on, ctx has the token of a user with the role root, as for
// any call.
//
// The backup is complete, checked and durable when Backup returns. If it fails, or is killed, the directory has the
// backups that it had before, and a retry is safe. An error has the code Unavailable if another member may succeed:
// this one ended, knows no leader, or is behind the backups. The total time is bounded by ctx alone.
//
// A server that makes no increments, as etcd, gets a whole backup each time.
func Backup(ctx context.Context, member grpc.ClientConnInterface, o BackupOptions) (BackupMade, error) {
	began := time.Now()
	b := &backing{member: member, o: &o}
	made, err := b.run(ctx)
	made.Seconds = time.Since(began).Seconds()
	return made, err
}

// Backups returns the backups of a directory, by number. It reads the beginning and the end of each file.
func Backups(dir string) ([]BackupInfo, error) { return backups.List(dir) }

// CheckBackups is Backups with every file read to its end and compared with its SHA-256.
func CheckBackups(ctx context.Context, dir string) ([]BackupInfo, error) {
	return backups.Check(ctx, dir)
}

// RestoreBump is added to the revision of a restored backup by default, so that no client mistakes a new revision for
// one that it saw after the backup. It must exceed the number of revisions that were written after the backup.
const RestoreBump = 1_000_000_000

// RestoreOptions are the options of [RestoreBackup].
type RestoreOptions struct {
	// Revision is that of one of the backups; 0: that of the newest backup.
	Revision int64
	// Bump is added to the backup's revision, and everything up to the sum counts as compacted; 0: [RestoreBump].
	Bump uint64
	// MayGoBack: nothing is added, so revisions continue right behind that of the backup, although clients may have
	// seen later ones.
	MayGoBack bool
}

// Added returns the number that is added to the backup's revision.
func (o *RestoreOptions) Added() uint64 {
	if o.MayGoBack {
		return 0
	}
	return cmp.Or(o.Bump, RestoreBump)
}

// RestoreBackup prepares a store's directory ([Config].Store.Dir), which has no store yet, from a directory of backups.
// Every first member of the new cluster must be restored from the same backup, with the same options. The backup is
// returned. Before the store gets its name, all digests are checked and, after each increment, the database is compared
// with the member's that wrote it. After an error the directory has no store.
func RestoreBackup(from, dir string, o RestoreOptions) (BackupInfo, error) {
	chain, err := backups.Find(from, o.Revision)
	if err != nil {
		return BackupInfo{}, err
	}
	full, increments := chain.Files(from)
	return *chain.Last(), store.Import(full, dir,
		store.ImportOptions{BumpRevision: o.Added(), Increments: increments})
}

// backing makes a backup.
type backing struct {
	member  grpc.ClientConnInterface
	o       *BackupOptions
	dir     *backups.Dir
	cluster uint64
}

func (b *backing) run(ctx context.Context) (made BackupMade, err error) {
	if b.dir, err = backups.Open(b.o.Dir); err != nil {
		return made, err
	}
	defer func() {
		if failed := b.dir.Close(); err == nil { // joined errors would have no code
			err = failed
		}
	}()
	if b.cluster, err = b.led(ctx); err != nil {
		return made, err
	}
	if !b.o.Full {
		if err := b.dir.CheckNewest(ctx); err != nil { // an increment of a damaged one is of no use
			return made, err
		}
	}
	newest := b.dir.Newest()
	if id := strconv.FormatUint(b.cluster, 16); newest != nil && newest.Cluster != id {
		return made, fmt.Errorf("%w: %s has those of cluster %s, and the endpoint is of cluster %s", ErrOtherCluster,
			b.o.Dir, newest.Cluster, id)
	}
	if made.Full = b.mustBeFull(newest); made.Full == "" {
		err = b.increment(ctx, newest, &made)
		if status.Code(err) == codes.Unimplemented {
			made.Full, err = "the server makes no increments", nil
		}
	}
	if err == nil && made.Full != "" {
		err = b.full(ctx, newest, &made)
	}
	if err == nil && b.o.Keep > 0 {
		made.Removed, err = b.dir.Prune(b.o.Keep)
	}
	return made, err
}

// led returns the member's cluster. It fails if the member knows no leader, because then others may have acknowledged
// writes that the member does not have.
func (b *backing) led(ctx context.Context) (cluster uint64, err error) {
	st, err := pb.NewMaintenanceClient(b.member).Status(ctx, &pb.StatusRequest{})
	if err == nil && slices.Contains(st.Errors, etcderrors.ErrNoLeader.Error()) {
		err = status.Error(codes.Unavailable, "braid: backup: the member knows no leader, and may miss acknowledged "+
			"writes; \"braid ctl snapshot save\" saves the state that it has")
	}
	return st.GetHeader().GetClusterId(), err
}

// mustBeFull returns the reason why the next backup is a whole one; "": it is an increment.
func (b *backing) mustBeFull(newest *backups.Info) string {
	since := b.dir.Increments()
	switch {
	case newest == nil:
		return "it is the first"
	case b.o.Full:
		return "it was asked for"
	case newest.Problem != "":
		return "the one before is of no use: " + newest.Problem
	case b.o.Increments > 0 && since >= b.o.Increments:
		return fmt.Sprintf("there are %d increments since the last whole one", since)
	}
	return ""
}

// full adds a whole backup.
func (b *backing) full(ctx context.Context, newest *backups.Info, made *BackupMade) error {
	ctx, cancel := context.WithCancel(ctx) // ends the stream
	defer cancel()
	stream, err := pb.NewMaintenanceClient(b.member).Snapshot(ctx, &pb.SnapshotRequest{})
	if err != nil {
		return err
	}
	write := func(out io.Writer) error {
		p := BackupProgress{Kind: backups.Full}
		return b.receive(out, &p, func() ([]byte, error) {
			piece, err := stream.Recv()
			p.Total = p.Bytes + int64(len(piece.GetBlob())) + int64(piece.GetRemainingBytes())
			return piece.GetBlob(), err
		})
	}
	i, err := b.dir.Add(ctx, backups.Full, b.cluster, write, func(i *backups.Info) (bool, error) {
		if newest != nil && newest.Problem == "" && i.Now.Position < newest.Now.Position {
			return false, status.Errorf(codes.Unavailable, "braid: backup: the member is at position %d, and backup "+
				"%d is of position %d: another member may be ahead", i.Now.Position, newest.Number, newest.Now.Position)
		}
		_, err := b.led(ctx) // a member without a leader sends snapshots, too
		return err == nil, err
	})
	if err == nil {
		made.Backup = *i
	}
	return err
}

// increment adds an increment, unless nothing was changed.
func (b *backing) increment(ctx context.Context, newest *backups.Info, made *BackupMade) error {
	question, err := json.Marshal(backupQuestion{Since: newest.Now, Base: newest.SHA256})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx) // ends the stream
	defer cancel()
	stream, err := b.member.NewStream(ctx, &adminDesc.Streams[0], "/"+adminService+"/"+backupMethod)
	if err == nil {
		err = stream.SendMsg(wrapperspb.Bytes(question))
	}
	if err == nil || errors.Is(err, io.EOF) { // then receiving says why
		err = stream.CloseSend()
	}
	if err != nil {
		return err
	}
	write := func(out io.Writer) error {
		p := BackupProgress{Kind: backups.Increment}
		return b.receive(out, &p, func() ([]byte, error) {
			piece := new(wrapperspb.BytesValue)
			err := stream.RecvMsg(piece)
			return piece.Value, err
		})
	}
	i, err := b.dir.Add(ctx, backups.Increment, b.cluster, write, func(i *backups.Info) (bool, error) {
		if i.Base != newest.SHA256 || *i.Since != newest.Now {
			return false, errors.New("braid: backup: the member sent an increment of another backup")
		}
		return !newest.Now.Same(i.Now), nil
	})
	if err != nil {
		return err
	}
	if i == nil {
		made.Backup, made.Unchanged = *newest, true
		return nil
	}
	made.Backup = *i
	if newest.Now.Trimmed(&i.Now) {
		made.Trimmed = i.Now.Compacting
	}
	return nil
}

// receive writes pieces to out until the stream ends.
func (b *backing) receive(out io.Writer, p *BackupProgress, next func() ([]byte, error)) error {
	for {
		piece, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := out.Write(piece); err != nil {
			return err
		}
		p.Bytes += int64(len(piece))
		if b.o.Progress != nil {
			b.o.Progress(*p)
		}
	}
}
