package datadir

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/protocol"
)

// Recorded has the recorded settings of a directory.
type Recorded struct {
	Cluster uint64
	Member  protocol.MemberID
	// Kind is the kind of the log. Begin has the instances with which the cluster began.
	Kind  member.LogKind
	Begin order.Cursor
	// Quorums has the quorums of the cluster.
	Quorums string
}

// Inspect reads the recorded settings of a member's directory. guess is for a directory that does not record the kind
// of its log. It only reads.
func Inspect(fs vfs.FS, dir string, guess func() member.KindGuess) (t Recorded, err error) {
	id, err := parseIdentity(fs, dir)
	switch {
	case err != nil && !errors.As(err, new(*member.DirError)):
		return t, &member.DirError{Dir: dir, Detail: "is not a member's: " + err.Error()}
	case err == nil:
		err = id.checkFormat(dir, 0)
	}
	if err != nil {
		return t, err
	}
	t = Recorded{Cluster: id.Cluster, Member: id.Member, Kind: id.Kind, Quorums: cmp.Or(id.Quorums, majority)}
	if t.Kind.IsZero() {
		kinds, err := id.guessKinds(fs, dir, guess())
		if err != nil {
			return t, err
		}
		if len(kinds) == 0 {
			return t, &member.DirError{Dir: dir, Detail: "holds a log of no protocol that this program knows"}
		}
		t.Kind = kinds[0]
	}
	switch t.Kind.Order {
	case order.KindKeyed:
		t.Begin = order.BeginKeyed(max(1, id.Begun))
	default:
		t.Begin = order.Begin(max(1, id.Begun), t.Kind.Order == order.KindNiagara)
	}
	return t, nil
}

// Begun reports whether a member has started in the directory. An unreadable directory counts as not begun.
func Begun(fs vfs.FS, dir string) bool {
	_, err := fs.Stat(filepath.Join(dir, identityFile))
	return err == nil
}

// OwnerOf returns the member and the cluster to which a directory belongs; 0: to none yet. It only reads. The error is
// a [*member.DirError], or that of the disk.
func OwnerOf(fs vfs.FS, dir string) (self protocol.MemberID, cluster uint64, err error) {
	id, err := parseIdentity(fs, dir)
	if errors.Is(err, os.ErrNotExist) {
		return 0, 0, nil
	}
	return id.Member, id.Cluster, err
}
