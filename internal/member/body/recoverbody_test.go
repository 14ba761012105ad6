package body

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

func openStore(t *testing.T, fs vfs.FS) *wal.Bodies {
	b, err := wal.OpenBodies(wal.BodiesOptions{FS: fs, Dir: "bodies", Identity: []byte("x")})
	require.NoError(t, err)
	return b
}

// recovered is a log that begins after index 10. It has one entry for each form that the disk is
// to hold.
func recovered(commit protocol.Index, refs ...protocol.BodyRef) *protocol.Recovered {
	rec := &protocol.Recovered{Base: protocol.Base{Index: 10, Term: 1}, State: protocol.HardState{Commit: commit}}
	for _, ref := range refs {
		rec.Entries = append(rec.Entries, committedEntry(ref, protocol.FormNone))
	}
	return rec
}

func oneLog(rec *protocol.Recovered) []member.InstanceLog {
	return []member.InstanceLog{{Instance: 1, Recovered: rec}}
}

func store(t *testing.T, b *wal.Bodies, ref protocol.BodyRef, form protocol.Form, body []byte) {
	whole := Fragment{protocol.FormWhole, body}
	bytes, err := whole.Cut(ref.K, form)
	require.NoError(t, err)
	require.NoError(t, b.Append(*member.BodyRecord(ref, form, bytes).Body))
	require.NoError(t, b.Sync())
}

func TestRecoveryFindsOutWhatIsHeld(t *testing.T) {
	fs, body := vfs.NewMem(), someBody(1000)
	b := openStore(t, fs)
	whole, row, none, gone := refTo(11, 2, body), refTo(12, 2, body), refTo(13, 2, body), refTo(14, 2, body)
	referenced, garbage, torn := refTo(4, 2, body), refTo(5, 2, body), refTo(16, 2, body)
	store(t, b, whole, protocol.FormWhole, body)
	store(t, b, row, protocol.RowForm(2), body)
	require.NoError(t, b.Append(*member.BodyRecord(none, protocol.FormNone, nil).Body))
	for _, ref := range []protocol.BodyRef{referenced, garbage, torn} {
		store(t, b, ref, protocol.RowForm(2), body)
	}
	require.NoError(t, b.Close())

	b = openStore(t, fs)
	rec := recovered(14, whole, row, none, gone)
	require.NoError(t, RecoverBodies(oneLog(rec), b, []protocol.BodyRef{referenced}))
	var forms []protocol.Form
	for i := range rec.Entries {
		forms = append(forms, rec.Entries[i].Form)
	}
	require.Equal(t, []protocol.Form{protocol.FormWhole, protocol.RowForm(2), protocol.FormNone, protocol.FormNone}, forms)
	_, ok := b.Find(1, 4)
	require.True(t, ok, "the state refers to it")
	_, ok = b.Find(1, 5)
	require.False(t, ok)
	_, ok = b.Find(1, 16)
	require.False(t, ok, "its entry was never written")
	require.NoError(t, b.Close())

	b = openStore(t, fs)
	defer b.Close()
	require.NoError(t, RecoverBodies(oneLog(recovered(10, whole, row, none)), b, nil),
		"that nothing is held was written down")
	var corrupt *protocol.CorruptError
	require.ErrorAs(t, RecoverBodies(oneLog(recovered(13, whole, row, none, gone)), b, nil), &corrupt,
		"it was acknowledged")
}

func TestABodyDamagedAboveTheCommitIndexStopsTheMember(t *testing.T) {
	fs, body := vfs.NewMem(), someBody(100_000)
	b := openStore(t, fs)
	ref := refTo(11, 2, body)
	store(t, b, ref, protocol.FormWhole, body)
	store(t, b, refTo(12, 1, body[:10]), protocol.FormWhole, body[:10])
	require.NoError(t, b.Close())
	damageBodies(t, fs, "bodies", body[40_000:40_064])
	b = openStore(t, fs)
	defer b.Close()
	last := refTo(12, 1, body[:10])
	rec := recovered(11, ref, last)
	require.NoError(t, RecoverBodies(oneLog(rec), b, nil), "others have it")
	var corrupt *protocol.CorruptError
	require.ErrorAs(t, RecoverBodies(oneLog(recovered(10, ref, last)), b, nil), &corrupt)
}

// damageBodies flips a bit of some bytes wherever they stand in a directory.
func damageBodies(t *testing.T, fs vfs.FS, dir string, piece []byte) {
	found := 0
	names, err := fs.List(dir)
	require.NoError(t, err)
	for _, name := range names {
		path := filepath.Join(dir, name)
		if info, err := fs.Stat(path); err != nil || info.IsDir() || info.Size() == 0 {
			continue
		}
		found += damageFile(t, fs, path, piece)
	}
	require.Positive(t, found, "the bytes are in no file")
}

func damageFile(t *testing.T, fs vfs.FS, path string, piece []byte) (found int) {
	from, err := fs.Open(path)
	require.NoError(t, err)
	content, err := io.ReadAll(from)
	require.NoError(t, err)
	require.NoError(t, from.Close())
	f, err := fs.OpenReadWrite(path)
	require.NoError(t, err)
	defer f.Close()
	for at := bytes.Index(content, piece); at >= 0; at = bytes.Index(content, piece) {
		content[at] ^= 1
		_, err := f.WriteAt(content[at:at+1], int64(at))
		require.NoError(t, err)
		found++
	}
	require.NoError(t, f.Sync())
	return found
}
func TestAReplacementThatDidNotReachTheLogIsNoLoss(t *testing.T) {
	fs, body := vfs.NewMem(), someBody(5000)
	b := openStore(t, fs)
	old := refTo(11, 2, body)
	store(t, b, old, protocol.RowForm(1), body)
	newer := old
	newer.Term++
	store(t, b, newer, protocol.RowForm(1), body) // and a crash before the entry was written
	require.NoError(t, b.Close())
	b = openStore(t, fs)
	defer b.Close()
	rec := recovered(10, old)
	require.NoError(t, RecoverBodies(oneLog(rec), b, nil))
	require.Equal(t, protocol.RowForm(1), rec.Entries[0].Form)
	held, err := b.Read(1, 11)
	require.NoError(t, err)
	require.EqualValues(t, old.Term, held.Term)
}

var errUnreadable = errors.New("input/output error")

// sickFS is a file system whose files cannot be read while it is sick.
type sickFS struct {
	vfs.FS
	sick bool
}

type sickFile struct {
	vfs.File
	of *sickFS
}

func (s *sickFS) Open(name string) (vfs.File, error) {
	f, err := s.FS.Open(name)
	return sickFile{f, s}, err
}

func (s *sickFS) OpenReadWrite(name string) (vfs.File, error) {
	f, err := s.FS.OpenReadWrite(name)
	return sickFile{f, s}, err
}

func (f sickFile) ReadAt(p []byte, off int64) (int, error) {
	if f.of.sick {
		return 0, errUnreadable
	}
	return f.File.ReadAt(p, off)
}

// TestABodyThatCannotBeReadIsNotDamaged: the disk of a member fails to read when it starts. The
// member is not told that what it acknowledged is lost.
func TestABodyThatCannotBeReadIsNotDamaged(t *testing.T) {
	fs, body := &sickFS{FS: vfs.NewMem()}, someBody(1000)
	b := openStore(t, fs)
	ref := refTo(11, 2, body)
	store(t, b, ref, protocol.FormWhole, body)
	require.NoError(t, b.Close())
	b = openStore(t, fs)
	fs.sick = true
	err := RecoverBodies(oneLog(recovered(0, ref)), b, nil)
	require.ErrorIs(t, err, errUnreadable)
	require.False(t, member.IsDamage(err))
	fs.sick = false
	require.NoError(t, RecoverBodies(oneLog(recovered(0, ref)), b, nil))
	require.NoError(t, b.Close())
}

// TestABodyOfTheStateDoesNotTakeThePlaceOfAnAcknowledgedOne: a member hears that an entry is decided while the
// entry is on its way to its log. It applies the entry. Then the power fails. The state is durable, and so is
// the entry's body, but the log has the entry that was there before. The member acknowledged that one.
func TestABodyOfTheStateDoesNotTakeThePlaceOfAnAcknowledgedOne(t *testing.T) {
	body := someBody(5000)
	old := refTo(11, 2, body)
	newer := old
	newer.Term++
	for name, log := range map[string]member.InstanceLog{
		"in the log": {Instance: 1, Recovered: recovered(10, old)},
		"in a cell": {Instance: 1, Recovered: recovered(10),
			Accepted: []protocol.Entry{committedEntry(old, protocol.FormNone)}},
	} {
		fs := vfs.NewMem()
		b := openStore(t, fs)
		store(t, b, old, protocol.FormWhole, body)
		store(t, b, newer, protocol.FormWhole, body)
		require.NoError(t, b.Close())
		b = openStore(t, fs)
		require.NoError(t, RecoverBodies([]member.InstanceLog{log}, b, []protocol.BodyRef{newer}), name)
		held, err := b.Read(1, 11)
		require.NoError(t, err)
		require.EqualValues(t, old.Term, held.Term, name)
		require.NoError(t, b.Close())
	}
}
