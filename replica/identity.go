package replica

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/wal"
)

// identity says whose data directory it is, and counts the lives of the member.
type identity struct {
	Format  int               `json:"format"`
	Cluster uint64            `json:"cluster"`
	Member  protocol.MemberID `json:"member"`
	// Log is the identity with which the directory was born, drawn at random. Directories of
	// format 1 get one when they are entered first.
	Log protocol.LogID `json:"log,omitzero"`
	// Incarnation is raised and made durable before the member proposes anything, so
	// that a session is never used by two lives.
	Incarnation uint64 `json:"incarnation"`
	// Marks are those of the lives up to Incarnation, the last one's last; of the earliest
	// ones nothing is kept.
	Marks []uint64 `json:"marks,omitempty"`
	// Forgot says that the member found out that it had lost what it acknowledged: a life
	// after that would not be told again.
	Forgot *protocol.Forgot `json:"forgot,omitempty"`
	// Begun is with how many woven instances the cluster began; 0 if they are not woven.
	Begun int `json:"begun,omitempty"`
}

const (
	identityFile   = "member.json"
	identityFormat = 2 // 1 had no log identity
	maxMarks       = 1024
)

// Enter locks the directory for this process, checks that it is the member's own, and begins
// a new life of it, durably. Chance draws the identity of a directory that has none, and the
// life's mark.
func Enter(fs vfs.FS, dir string, cluster uint64, self protocol.MemberID, chance func() uint64) (own member.OwnIdentity, lock io.Closer, err error) {
	if err := wal.MakeDir(fs, dir, 0o700); err != nil {
		return own, nil, err
	}
	lock, err = fs.Lock(filepath.Join(dir, "LOCK"))
	if err != nil {
		return own, nil, &member.DirError{Dir: dir, Detail: fmt.Sprintf("is in use by another process (%v)", err)}
	}
	id, err := readIdentity(fs, dir, cluster, self)
	if err == nil && id.Forgot != nil {
		err = member.Forgotten(self, id.Forgot)
	}
	if err == nil {
		id.live(chance)
		err = writeIdentity(fs, dir, id)
	}
	if err != nil {
		return own, nil, errors.Join(err, lock.Close())
	}
	return member.OwnIdentity{Member: self, Log: id.Log, Life: id.Incarnation, Marks: id.Marks}, lock, nil
}

// live begins the next life.
func (id *identity) live(chance func() uint64) {
	if id.Log.IsZero() {
		id.Log = protocol.NewLogID(chance)
	}
	id.Format = identityFormat
	id.Incarnation++
	id.Marks = append(id.Marks, chance()|1)
	id.Marks = slices.Delete(id.Marks, 0, max(0, len(id.Marks)-maxMarks))
}

// Condemn has no life begin in the directory any more, for what it held was found to be lost.
func Condemn(fs vfs.FS, dir string, cluster uint64, self protocol.MemberID, f *protocol.Forgot) error {
	id, err := readIdentity(fs, dir, cluster, self)
	if err != nil || id.Forgot != nil {
		return err
	}
	id.Forgot = f
	return writeIdentity(fs, dir, id)
}

// Begin returns with how many instances the cluster began, by what the directory says, which
// is written there when the member begins: it is not to change when others are told later.
func Begin(fs vfs.FS, dir string, cluster uint64, self protocol.MemberID, instances int) (begun int, err error) {
	id, err := readIdentity(fs, dir, cluster, self)
	if err != nil || id.Begun > 0 {
		return id.Begun, err
	}
	id.Begun = instances
	return instances, writeIdentity(fs, dir, id)
}

func readIdentity(fs vfs.FS, dir string, cluster uint64, self protocol.MemberID) (id identity, err error) {
	b, err := wal.ReadFile(fs, filepath.Join(dir, identityFile), 1<<16)
	if errors.Is(err, os.ErrNotExist) {
		return identity{Format: identityFormat, Cluster: cluster, Member: self}, nil
	}
	if err != nil {
		return id, err
	}
	if err := json.Unmarshal(b, &id); err != nil {
		return id, &member.DirError{Dir: dir, Detail: identityFile + " is damaged: " + err.Error()}
	}
	switch {
	case id.Format < 1 || id.Format > identityFormat:
		return id, &member.DirError{Dir: dir, Detail: fmt.Sprintf("has format %d, this program knows %d and earlier ones", id.Format, identityFormat)}
	case id.Cluster != cluster:
		return id, &member.DirError{Dir: dir, Detail: fmt.Sprintf("belongs to cluster %x, not to %x", id.Cluster, cluster)}
	case id.Member != self:
		return id, &member.DirError{Dir: dir, Detail: fmt.Sprintf("belongs to member %s, not to %s", id.Member, self)}
	}
	return id, nil
}

func writeIdentity(fs vfs.FS, dir string, id identity) error {
	b, err := json.Marshal(id)
	if err != nil {
		return err
	}
	return wal.WriteFile(fs, filepath.Join(dir, identityFile), append(b, '\n'))
}
