package datadir

import (
	"cmp"
	"encoding/json"
	"path/filepath"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// Told is what a directory records about itself.
type Told struct {
	Cluster uint64
	Member  protocol.MemberID
	// Kind is what the log is. Begin is with which instances the cluster began.
	Kind  member.LogKind
	Begin order.Cursor
	// Quorums tells which quorums the cluster has.
	Quorums string
}

// Inspect reads what a directory in which a member has lived tells of itself. guess finds out the kind of the log where
// the directory does not tell it. It only reads.
func Inspect(fs vfs.FS, dir string, guess func() member.KindGuess) (t Told, err error) {
	b, err := wal.ReadFile(fs, filepath.Join(dir, identityFile), 1<<16)
	if err != nil {
		return t, &member.DirError{Dir: dir, Detail: "is not a member's: " + err.Error()}
	}
	var who identity
	if err := json.Unmarshal(b, &who); err != nil {
		return t, &member.DirError{Dir: dir, Detail: identityFile + " is damaged: " + err.Error()}
	}
	id, err := readIdentity(fs, dir, who.Cluster, who.Member)
	if err != nil {
		return t, err
	}
	t = Told{Cluster: id.Cluster, Member: id.Member, Kind: id.Kind, Quorums: cmp.Or(id.Quorums, majority)}
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

// Begun reports whether a member's directory has been begun. An unreadable directory counts as not begun.
func Begun(fs vfs.FS, dir string) bool {
	_, err := fs.Stat(filepath.Join(dir, identityFile))
	return err == nil
}
