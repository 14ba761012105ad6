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
	"github.com/braidlog/braid/internal/format"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// identity is the member to which a data directory belongs, with the number of its incarnations.
type identity struct {
	Format  int               `json:"format"`
	Cluster uint64            `json:"cluster"`
	Member  protocol.MemberID `json:"member"`
	// Log is the random log identity that the directory was created with. A directory of format 1 has none; it gets one
	// when a member enters it for the first time after that.
	Log protocol.LogID `json:"log,omitzero"`
	// Incarnation is the number of the incarnation. It is raised and made durable before the member proposes anything,
	// so that two incarnations never use the same session.
	Incarnation uint64 `json:"incarnation"`
	// Marks are the marks of the incarnations up to Incarnation, in order. The earliest marks are dropped.
	Marks []uint64 `json:"marks,omitempty"`
	// Forgot indicates that the member found that it had lost what it acknowledged. It is kept here because a later
	// incarnation would not learn it again.
	Forgot *protocol.Forgot `json:"forgot,omitempty"`
	// Begun is the number of merged instances with which the cluster began; 0 if they are not merged.
	Begun int `json:"begun,omitempty"`
	// Epochs has the settings of the epochs with which the member's first incarnation began; "": there were none, or the
	// program knew only one choice.
	Epochs string `json:"epochs,omitempty"`
	// Quorums has the quorums with which the member's first incarnation began; "": majorities.
	Quorums string `json:"quorums,omitempty"`
	// Kind is the kind of the log. A directory of an earlier version does not record it, until an incarnation has begun
	// that fits the log.
	Kind member.LogKind `json:"log_kind,omitzero"`
	// Profile: the log had a profile when the first incarnation began. An earlier version does not record it.
	Profile bool `json:"profile,omitempty"`
	// Birth is the state with which the cluster began: birthEmpty, birthUnknown, or a state's name; "": an earlier
	// version did not record it.
	Birth string `json:"birth,omitempty"`
	// Lineages: the directory was created by a version that knows lineages of logs.
	Lineages bool `json:"lineages,omitempty"`
	// Founders is a digest of the members with which the member founded its log; 0: it joined, or an earlier version did
	// not record it.
	Founders uint64 `json:"founders,omitempty"`
	// Cells: the log may have cells, although it began with settings that use none.
	Cells bool `json:"cells,omitempty"`
}

// Owner is the member that enters a directory, and the settings that must not differ between two incarnations there.
type Owner struct {
	Cluster uint64
	Member  protocol.MemberID
	// Epochs has the settings of the epochs; "": there are none.
	Epochs string
	// Quorums has the quorums of the cluster; "": majorities.
	Quorums string
	// Kind is the expected kind of the log; zero: it is not compared. Profile: the log has a profile from the beginning
	// on, or other members say that it has one. Sealed: they say that it had a seal.
	Kind    member.LogKind
	Profile bool
	Sealed  bool
	// Birth is the name of the state with which the member's state machine begins; "": an empty one. Join: the member
	// joins a running cluster.
	Birth string
	Join  bool
	// Founders is a digest of the members with which a new cluster is founded (cluster.Founders); 0: none is.
	Founders uint64
	// Newest is the newest format that the program knows; 0: [format.Newest].
	Newest int
	// Guess returns a guess for a directory that does not record the kind; nil: any kind is accepted.
	Guess func() member.KindGuess
}

const majority = "majority"

// onlyEpochs are the settings of the epochs of all directories that do not record theirs.
const onlyEpochs = "slots 64-1024, shares by load, policy combined, bans 8-256"

const (
	identityFile = "member.json"
	maxMarks     = 1024
)

// The formats of an identity. A program does not open a directory with a later format than it knows.
const (
	formatBare   = 1 // there was no log identity
	formatSingle = 2 // the log of one instance
	// formatMerged: the log may be merged from several instances, which share the numbers of sessions. Earlier programs
	// would take them for different ones.
	formatMerged = 3
	// formatEpochs: the epochs have other settings than earlier programs know.
	formatEpochs = 4
	// formatQuorums: quorums are not majorities, as earlier programs would assume.
	formatQuorums = 5
	// formatCells: the log may have cells that its kind does not tell. Earlier programs would start without them.
	formatCells = 6
	// formatGrown: a log that began with one instance has an entry that makes several of it, or has had several.
	// Earlier programs would ignore that entry, and apply only the first instance.
	formatGrown = 7
	// formatSealed: the log has an entry that seals it, or had one. Earlier programs would ignore that entry, and apply
	// what stands behind it.
	formatSealed = 8
)

// Later formats are those of the whole log, from format.First on: see Opened.WriteFormat.
var _ = [1]int{}[formatSealed-format.First]

// Enter locks the directory for this process, checks that it belongs to this member, and begins
// a new incarnation durably. chance draws the incarnation's mark, and the log identity of a directory that has none.
// It returns a [*member.DirError] if the directory belongs to another member or is in use, a [*member.LogKindError]
// if the log is of another kind. A refused directory is not changed.
func Enter(
	fs vfs.FS, dir string, who Owner, chance func() uint64,
) (own cluster.OwnIdentity, lock io.Closer, err error) {
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
		id.nextIncarnation(chance)
		err = writeIdentity(fs, dir, id)
	}
	if err != nil {
		return own, nil, errors.Join(err, lock.Close())
	}
	return cluster.OwnIdentity{Member: who.Member, Log: id.Log, Incarnation: id.Incarnation,
		Marks: id.Marks, Born: id.Lineages, Founders: id.Founders}, lock, nil
}

// Check returns why Enter would refuse the directory; nil: it would not, or there is none. It only reads, and may be
// called while a member runs there.
func Check(fs vfs.FS, dir string, who Owner) error {
	_, err := admit(fs, dir, &who)
	return err
}

// admit reads the identity of a directory in which an incarnation is about to begin, and compares it with the owner.
// The result includes what the first incarnation sets. Nothing is written.
func admit(fs vfs.FS, dir string, who *Owner) (id identity, err error) {
	if id, err = readIdentity(fs, dir, who.Cluster, who.Member); err != nil {
		return id, err
	}
	if err := id.checkFormat(dir, who.Newest); err != nil {
		return id, err
	}
	if id.Forgot != nil {
		return id, cluster.Forgotten(who.Member, id.Forgot)
	}
	if err := id.checkKind(fs, dir, who); err != nil {
		return id, err // other differences follow from it
	}
	if !who.Kind.IsZero() {
		if !id.Kind.IsZero() && id.Kind.Core != who.Kind.Core { // a log of either name may have cells
			id.Cells, id.Format = true, max(id.Format, formatCells)
		}
		id.Kind = who.Kind
	}
	id.Profile = id.Profile || id.Incarnation == 0 && who.Profile
	if who.Sealed {
		id.Format = max(id.Format, formatSealed)
	}
	if id.Incarnation == 0 || !Founded(fs, dir) {
		id.Founders = 0
		if !who.Join {
			id.Founders = who.Founders
		}
	}
	return id, errors.Join(id.resolveBirth(dir, who), id.fix(dir, who.Epochs),
		id.fixQuorums(dir, cmp.Or(who.Quorums, majority)))
}

// Founded reports whether a directory has the snapshot with the first membership. A first incarnation may have ended
// before it was written: then the next one founds the log, perhaps with another list. If the directory cannot be
// read, the snapshot counts as present.
func Founded(fs vfs.FS, dir string) bool {
	ok, err := (&Snapshots{fs: fs, dir: filepath.Join(dir, snapshotDir)}).Any()
	return ok || err != nil && !errors.Is(err, os.ErrNotExist)
}

// fix records the settings of the epochs in a new directory, and compares them in any other one. With other settings
// the log would have other epochs, and the member's promises would be about slots of another leader.
func (id *identity) fix(dir, epochs string) error {
	if epochs == "" {
		return nil
	}
	if id.Incarnation == 0 {
		id.Epochs = epochs
	}
	if had := cmp.Or(id.Epochs, onlyEpochs); had != epochs {
		return &member.DirError{Dir: dir,
			Detail: fmt.Sprintf("was begun with epochs of %q, not %q: a start does not change them", had, epochs)}
	}
	if epochs != onlyEpochs {
		id.Format = max(id.Format, formatEpochs)
	}
	return nil
}

// fixQuorums does the same with the quorums. With others a leader could be elected by members that do not know the
// decisions.
func (id *identity) fixQuorums(dir, quorums string) error {
	if id.Incarnation == 0 && quorums != majority {
		id.Quorums = quorums
	}
	if had := cmp.Or(id.Quorums, majority); had != quorums {
		return &member.DirError{Dir: dir,
			Detail: fmt.Sprintf("was begun with quorums %q, not %q: a start does not change them", had, quorums)}
	}
	if quorums != majority {
		id.Format = max(id.Format, formatQuorums)
	}
	return nil
}

// nextIncarnation begins the next incarnation.
func (id *identity) nextIncarnation(chance func() uint64) {
	if id.Log.IsZero() {
		id.Log = protocol.NewLogID(chance)
	}
	id.Format = max(id.Format, formatSingle)
	id.Incarnation++
	id.Marks = append(id.Marks, chance()|1)
	id.Marks = slices.Delete(id.Marks, 0, max(0, len(id.Marks)-maxMarks))
}

// Condemn records durably that no incarnation may begin in the directory any more, because the member lost what it
// had there. On a full disk the ballast makes space for the record. If it cannot be written, the identity is removed,
// which takes no space: no member connects to a directory with another identity. The error is the reason why there is
// no record.
func Condemn(fs vfs.FS, dir string, cluster uint64, self protocol.MemberID, f *protocol.Forgot) error {
	err := recordForgot(fs, dir, cluster, self, f)
	if err == nil {
		return nil
	}
	if fs.Remove(filepath.Join(dir, ballastFile)) == nil && recordForgot(fs, dir, cluster, self, f) == nil {
		return nil
	}
	return errors.Join(err, fs.Remove(filepath.Join(dir, identityFile)), syncDir(fs, dir))
}

// recordForgot writes the record, even if it exists: it may not be durable.
func recordForgot(fs vfs.FS, dir string, cluster uint64, self protocol.MemberID, f *protocol.Forgot) error {
	id, err := readIdentity(fs, dir, cluster, self)
	if err != nil {
		return err
	}
	id.Forgot = f
	return writeIdentity(fs, dir, id)
}

// Begin returns the number of instances with which the cluster began, if there may be several. The first call writes
// it into the directory. Later calls return what is written there, so that the number does not change if a later call
// has another one. From then on an earlier program does not open the directory.
func Begin(fs vfs.FS, dir string, cluster uint64, self protocol.MemberID, instances int) (begun int, err error) {
	id, err := readIdentity(fs, dir, cluster, self)
	if err != nil || id.Begun > 0 && id.Format >= formatMerged {
		return id.Begun, err
	}
	if id.Begun == 0 {
		id.Begun = instances
	}
	id.Format = max(id.Format, formatMerged)
	return id.Begun, writeIdentity(fs, dir, id)
}

// recordCells makes durable that the log may have cells. From then on an earlier program does not open the directory.
func recordCells(fs vfs.FS, dir string, cluster uint64, self protocol.MemberID) error {
	id, err := readIdentity(fs, dir, cluster, self)
	if err != nil {
		return err
	}
	id.Cells, id.Format = true, max(id.Format, formatCells)
	return writeIdentity(fs, dir, id)
}

// Grow records durably that a log that began with one instance may have several. From then on an earlier program does
// not open the directory. It does nothing if that is recorded, or if the log began with a merged order.
func Grow(fs vfs.FS, dir string, cluster uint64, self protocol.MemberID) error {
	id, err := readIdentity(fs, dir, cluster, self)
	if err != nil || id.Begun > 0 || id.Format >= formatGrown { // also if it is sealed
		return err
	}
	id.Format = formatGrown
	return writeIdentity(fs, dir, id)
}

// RecordFormat makes durable that the directory may have a format. From then on a program that does not know it does
// not open the directory.
func RecordFormat(fs vfs.FS, dir string, cluster uint64, self protocol.MemberID, to int) error {
	id, err := readIdentity(fs, dir, cluster, self)
	if err != nil || id.Format >= to {
		return err
	}
	id.Format = to
	return writeIdentity(fs, dir, id)
}

// RecordSeal makes durable that the log may have a seal. From then on an earlier program does not open the directory.
func RecordSeal(fs vfs.FS, dir string, cluster uint64, self protocol.MemberID) error {
	id, err := readIdentity(fs, dir, cluster, self)
	if err != nil || id.Format >= formatSealed {
		return err
	}
	id.Format = formatSealed
	return writeIdentity(fs, dir, id)
}

func readIdentity(fs vfs.FS, dir string, cluster uint64, self protocol.MemberID) (id identity, err error) {
	if id, err = parseIdentity(fs, dir); errors.Is(err, os.ErrNotExist) {
		return identity{Format: formatSingle, Cluster: cluster, Member: self, Lineages: true}, nil
	}
	switch {
	case err != nil:
		return id, err
	case id.Format < formatBare:
		return id, &member.DirError{Dir: dir, Detail: fmt.Sprintf("%s is damaged: format %d", identityFile, id.Format)}
	case id.Cluster != cluster:
		return id, &member.DirError{Dir: dir, Detail: fmt.Sprintf("belongs to cluster %x, not to %x", id.Cluster, cluster)}
	case id.Member != self:
		return id, &member.DirError{Dir: dir, Detail: fmt.Sprintf("belongs to member %s, not to %s", id.Member, self)}
	}
	return id, nil
}

// parseIdentity reads the identity of a directory of any member and in any format.
func parseIdentity(fs vfs.FS, dir string) (id identity, err error) {
	b, err := wal.ReadFile(fs, filepath.Join(dir, identityFile), 1<<16)
	if err != nil {
		return id, err
	}
	if err := json.Unmarshal(b, &id); err != nil {
		return id, &member.DirError{Dir: dir, Detail: identityFile + " is damaged: " + err.Error()}
	}
	return id, nil
}

// checkFormat refuses a directory in which a program has written that knows more formats; newest 0: [format.Newest].
func (id *identity) checkFormat(dir string, newest int) error {
	if newest = cmp.Or(newest, format.Newest()); id.Format <= newest {
		return nil
	}
	return &member.DirError{Dir: dir, Detail: fmt.Sprintf("was written in format %d by a later version of braid, "+
		"and this program knows formats up to %d: start that version again. There is no way back to an earlier one in "+
		"this directory", id.Format, newest)}
}

func writeIdentity(fs vfs.FS, dir string, id identity) error {
	b, err := json.Marshal(id)
	if err != nil {
		return err
	}
	return wal.WriteFile(fs, filepath.Join(dir, identityFile), append(b, '\n'))
}
