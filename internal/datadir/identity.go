package datadir

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/braidlog/braid/internal/durable"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// identity says which member a data directory belongs to, and counts the incarnations of that member.
type identity struct {
	Format  int               `json:"format"`
	Cluster uint64            `json:"cluster"`
	Member  protocol.MemberID `json:"member"`
	// Log is the random log identity that the directory was born with. A directory of format 1 has
	// none; it gets one when a member enters it for the first time after that.
	Log protocol.LogID `json:"log,omitzero"`
	// Incarnation is the number of the incarnation. It is raised and made durable before the member
	// proposes anything, so that two lives never use the same session.
	Incarnation uint64 `json:"incarnation"`
	// Marks are the marks of the lives up to Incarnation, in order. The marks of the earliest lives
	// are dropped.
	Marks []uint64 `json:"marks,omitempty"`
	// Forgot indicates that the member found that it had lost what it acknowledged. It is kept here
	// because no one would tell a later incarnation again.
	Forgot *protocol.Forgot `json:"forgot,omitempty"`
	// Begun is the number of merged instances with which the cluster began; 0 if they are not merged.
	Begun int `json:"begun,omitempty"`
	// Epochs tells the settings of the epochs with which the member's first incarnation began; "": there were
	// none, or the program knew one choice only.
	Epochs string `json:"epochs,omitempty"`
	// Quorums tells with which quorums the member's first incarnation began; "": majorities.
	Quorums string `json:"quorums,omitempty"`
	// Kind is the kind of the log. A directory of an earlier version does not tell it, until an incarnation begins that
	// was found to fit what is there.
	Kind member.LogKind `json:"log_kind,omitzero"`
	// Birth is the state with which the cluster began: birthEmpty, birthUnknown, or a state's name; "": an earlier
	// version did not tell.
	Birth string `json:"birth,omitempty"`
	// Lineages: the directory was born with a version that knows of lineages of logs.
	Lineages bool `json:"lineages,omitempty"`
	// Founders is a digest of the members with which the member founded its log; 0: it joined, or an earlier version did
	// not tell.
	Founders uint64 `json:"founders,omitempty"`
}

// Owner is who enters a directory, and what may never differ between two lives there.
type Owner struct {
	Cluster uint64
	Member  protocol.MemberID
	// Epochs tells the settings of the epochs; "": there are none.
	Epochs string
	// Quorums tells which quorums the cluster has; "": majorities.
	Quorums string
	// Kind is what the log is to be; zero: that is not compared.
	Kind member.LogKind
	// Birth names the state with which the member's state machine begins; "": an empty one. Join: the member is to join a
	// running cluster.
	Birth string
	Join  bool
	// Founders is a digest of the members with which a new cluster is founded (cluster.Founders); 0: none is.
	Founders uint64
	// Guess makes what finds out the kind of a directory that does not tell it; nil: any is taken.
	Guess func() member.KindGuess
}

const majority = "majority"

// onlyEpochs are the settings of the epochs of all directories that do not tell theirs.
const onlyEpochs = "slots 64-1024, shares by load, policy combined, bans 8-256"

const (
	identityFile = "member.json"
	maxMarks     = 1024
)

// The formats of an identity. A program does not open what has a later format than it knows.
const (
	formatBare   = 1 // there was no log identity
	formatSingle = 2 // the log of one instance
	// formatWoven: the log may be merged from several instances, which share the numbers of
	// sessions. Earlier programs would take them for different ones.
	formatWoven = 3
	// formatEpochs: the epochs have other settings than earlier programs know.
	formatEpochs = 4
	// formatQuorums: quorums are no majorities, which earlier programs would take them for.
	formatQuorums = 5
	newestFormat  = formatQuorums
)

// Enter locks the directory for this process, checks that it belongs to this member, and begins
// a new incarnation durably. chance draws the incarnation's mark, and the log identity of a directory that has none.
// A directory that belongs to someone else or is in use gives a [*member.DirError], one with a log of another
// kind a [*member.LogKindError]. A directory that is refused stays as it was.
func Enter(fs vfs.FS, dir string, who Owner, chance func() uint64) (own cluster.OwnIdentity, lock io.Closer, err error) {
	if err := durable.MakeDir(fs, dir, 0o700); err != nil {
		return own, nil, err
	}
	lock, err = fs.Lock(filepath.Join(dir, "LOCK"))
	if err != nil {
		return own, nil, &member.DirError{Dir: dir, Detail: fmt.Sprintf("is in use by another process (%v)", err)}
	}
	id, err := admit(fs, dir, &who)
	if err == nil {
		err = DropBallast(fs, dir)
	}
	if err == nil {
		id.live(chance)
		err = writeIdentity(fs, dir, id)
	}
	if err != nil {
		return own, nil, errors.Join(err, lock.Close())
	}
	return cluster.OwnIdentity{Member: who.Member, Log: id.Log, Life: id.Incarnation, Marks: id.Marks, Born: id.Lineages, Founders: id.Founders}, lock, nil
}

// Check returns why Enter would refuse the directory; nil: it would not, or there is none. It only reads, also while
// a member runs there.
func Check(fs vfs.FS, dir string, who Owner) error {
	_, err := admit(fs, dir, &who)
	return err
}

// admit reads the identity of a directory in which an incarnation is to begin, and compares it with who is to live
// there. What the first incarnation settles is in it. Nothing is written.
func admit(fs vfs.FS, dir string, who *Owner) (id identity, err error) {
	if id, err = readIdentity(fs, dir, who.Cluster, who.Member); err != nil {
		return id, err
	}
	if id.Forgot != nil {
		return id, cluster.Forgotten(who.Member, id.Forgot)
	}
	if err := id.checkKind(fs, dir, who); err != nil {
		return id, err // what else may differ follows from it
	}
	if !who.Kind.IsZero() {
		id.Kind = who.Kind
	}
	if id.Incarnation == 0 || !founded(fs, dir) {
		id.Founders = 0
		if !who.Join {
			id.Founders = who.Founders
		}
	}
	return id, errors.Join(id.settleBirth(dir, who), id.fix(dir, who.Epochs), id.fixQuorums(dir, cmp.Or(who.Quorums, majority)))
}

// founded reports whether a directory has the snapshot that says who the members are. A first incarnation may have
// ended before it was there: then the next one founds the log, perhaps with another list. What cannot be read counts
// as there.
func founded(fs vfs.FS, dir string) bool {
	ok, err := (&Snapshots{fs: fs, dir: filepath.Join(dir, snapshotDir)}).Any()
	return ok || err != nil && !errors.Is(err, os.ErrNotExist)
}

// fix records the settings of the epochs in a new directory, and compares them in any other one. With other settings
// other epochs would follow from the log that is there, and what the member promised would be about slots of another
// leader.
func (id *identity) fix(dir, epochs string) error {
	if epochs == "" {
		return nil
	}
	if id.Incarnation == 0 {
		id.Epochs = epochs
	}
	if had := cmp.Or(id.Epochs, onlyEpochs); had != epochs {
		return &member.DirError{Dir: dir, Detail: fmt.Sprintf("was begun with epochs of %q, not %q: they never change", had, epochs)}
	}
	if epochs != onlyEpochs {
		id.Format = max(id.Format, formatEpochs)
	}
	return nil
}

// fixQuorums does the same with the quorums. With others a leader could be elected by members that know nothing of what
// was decided.
func (id *identity) fixQuorums(dir, quorums string) error {
	if id.Incarnation == 0 && quorums != majority {
		id.Quorums = quorums
	}
	if had := cmp.Or(id.Quorums, majority); had != quorums {
		return &member.DirError{Dir: dir, Detail: fmt.Sprintf("was begun with quorums %q, not %q: they never change", had, quorums)}
	}
	if quorums != majority {
		id.Format = max(id.Format, formatQuorums)
	}
	return nil
}

// live begins the next incarnation.
func (id *identity) live(chance func() uint64) {
	if id.Log.IsZero() {
		id.Log = protocol.NewLogID(chance)
	}
	id.Format = max(id.Format, formatSingle)
	id.Incarnation++
	id.Marks = append(id.Marks, chance()|1)
	id.Marks = slices.Delete(id.Marks, 0, max(0, len(id.Marks)-maxMarks))
}

// Condemn notes durably that no incarnation may begin in the directory any more, because the member lost what it had
// there. On a full disk the ballast makes space for the note. If the note cannot be written, the identity is removed,
// which takes no space: a directory that gets another identity is linked to by no one. The error explains why there is
// no note.
func Condemn(fs vfs.FS, dir string, cluster uint64, self protocol.MemberID, f *protocol.Forgot) error {
	err := noteForgot(fs, dir, cluster, self, f)
	if err == nil {
		return nil
	}
	if fs.Remove(filepath.Join(dir, ballastFile)) == nil && noteForgot(fs, dir, cluster, self, f) == nil {
		return nil
	}
	return errors.Join(err, fs.Remove(filepath.Join(dir, identityFile)), syncDir(fs, dir))
}

// noteForgot writes the note, also if it is there: it may be there and not be durable.
func noteForgot(fs vfs.FS, dir string, cluster uint64, self protocol.MemberID, f *protocol.Forgot) error {
	id, err := readIdentity(fs, dir, cluster, self)
	if err != nil {
		return err
	}
	id.Forgot = f
	return writeIdentity(fs, dir, id)
}

// Begin returns the number of instances with which the cluster began, if there may be several. The first
// call writes it into the directory. Later calls return what is written there, so that the number
// does not change if a later call has another one. From now on an earlier program does not open the
// directory.
func Begin(fs vfs.FS, dir string, cluster uint64, self protocol.MemberID, instances int) (begun int, err error) {
	id, err := readIdentity(fs, dir, cluster, self)
	if err != nil || id.Begun > 0 && id.Format >= formatWoven {
		return id.Begun, err
	}
	if id.Begun == 0 {
		id.Begun = instances
	}
	id.Format = max(id.Format, formatWoven)
	return id.Begun, writeIdentity(fs, dir, id)
}

func readIdentity(fs vfs.FS, dir string, cluster uint64, self protocol.MemberID) (id identity, err error) {
	b, err := wal.ReadFile(fs, filepath.Join(dir, identityFile), 1<<16)
	if errors.Is(err, os.ErrNotExist) {
		return identity{Format: formatSingle, Cluster: cluster, Member: self, Lineages: true}, nil
	}
	if err != nil {
		return id, err
	}
	if err := json.Unmarshal(b, &id); err != nil {
		return id, &member.DirError{Dir: dir, Detail: identityFile + " is damaged: " + err.Error()}
	}
	switch {
	case id.Format < formatBare || id.Format > newestFormat:
		return id, &member.DirError{Dir: dir, Detail: fmt.Sprintf("has format %d, this program knows %d and earlier ones", id.Format, newestFormat)}
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
