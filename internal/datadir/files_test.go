package datadir

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/format"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/vfs/errorfs"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

func metaAt(position protocol.Position, index protocol.Index, term protocol.Term) member.Meta {
	return member.Meta{
		Cursor: order.Cursor{Position: position, Points: []order.Point{{Instance: 1, Index: index, Term: term}}},
		Config: protocol.Config{Members: []protocol.Member{{ID: 1}}},
	}
}

func writeState(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

// A snapshot that waits to be merged is no snapshot of the member: a start ignores it.
func TestStagedSnapshotsDoNotCount(t *testing.T) {
	fs := vfs.NewMem()
	s, err := OpenSnapshots(fs, "snapshots")
	require.NoError(t, err)
	_, err = s.Staged()
	require.Error(t, err)
	require.NoError(t, s.Unstage(), "there is nothing")
	keyed := func(p protocol.Position) SnapshotHeader {
		h := SnapshotHeader{Meta: metaAt(p, 3, 1), HasState: true}
		h.Cursor.Keyed = true
		return h
	}
	for _, p := range []protocol.Position{7, 9} {
		require.NoError(t, s.Receive(keyed(p), writeState("state")))
	}
	all, err := s.Positions()
	require.NoError(t, err)
	require.Empty(t, all)
	f, err := s.Staged()
	require.NoError(t, err)
	require.Equal(t, keyed(9).Meta, f.Meta())
	require.NoError(t, f.Verify())
	require.NoError(t, f.Close())
	require.NoError(t, s.Unstage())
	_, err = s.Staged()
	require.Error(t, err)

	broken := func(w io.Writer) error { writeState("half")(w); return io.ErrUnexpectedEOF }
	require.ErrorIs(t, s.Receive(keyed(3), broken), io.ErrUnexpectedEOF)
	require.NoError(t, s.Receive(keyed(9), writeState("state")))
	_, err = OpenSnapshots(fs, "snapshots")
	require.NoError(t, err)
	names, err := fs.List("snapshots")
	require.NoError(t, err)
	require.Empty(t, names, "a start removes what was staged")
}

func TestSnapshotFilesAreWholeOrNotThere(t *testing.T) {
	fs := vfs.NewMem()
	s, err := OpenSnapshots(fs, "snapshots")
	require.NoError(t, err)
	_, ok, err := s.Newest()
	require.NoError(t, err)
	require.False(t, ok)

	broken := func(w io.Writer) error { writeState("half")(w); return io.ErrUnexpectedEOF }
	require.ErrorIs(t, s.Write(SnapshotHeader{Meta: metaAt(3, 3, 1), HasState: true}, broken), io.ErrUnexpectedEOF)
	names, err := fs.List("snapshots")
	require.NoError(t, err)
	require.Empty(t, names)

	for _, p := range []protocol.Position{5, 9} {
		require.NoError(t, s.Write(SnapshotHeader{Meta: metaAt(p, protocol.Index(p), 1), HasState: true},
			writeState("state")))
	}
	h, ok, err := s.Newest()
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, metaAt(9, 9, 1), h.Meta)
	require.NoError(t, s.Prune(9))
	f, err := s.At(protocol.Base{Index: 9, Term: 1}, 1)
	require.NoError(t, err)
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, "state", string(b))
	require.NoError(t, f.Verify())
	require.NoError(t, f.Close())
	f, err = s.At(protocol.Base{Index: 5, Term: 1}, 1)
	require.NoError(t, err, "the one that goes further stands for the one that is pruned")
	require.EqualValues(t, 9, f.Header.Cursor.Position)
	require.NoError(t, f.Close())
	_, err = s.At(protocol.Base{Index: 10, Term: 1}, 1)
	require.Error(t, err)
	require.NoError(t, s.Prune(10))
	_, err = s.At(protocol.Base{Index: 5, Term: 1}, 1)
	require.Error(t, err, "pruned")
}

// A snapshot that a start finds is durable then: the log begins after it, although the process that wrote it may have
// been killed before its name was durable.
func TestASnapshotThatAStartFoundStays(t *testing.T) {
	mem, killed := vfs.NewCrashableMem(), errors.New("killed")
	s, err := OpenSnapshots(mem, "/d/snapshots")
	require.NoError(t, err)
	at := func(p protocol.Position) SnapshotHeader {
		return SnapshotHeader{Meta: metaAt(p, protocol.Index(p), 1), HasState: true}
	}
	require.NoError(t, s.Write(at(5), writeState("state")))
	s.fs = errorfs.Wrap(mem, errorfs.InjectorFunc(func(o errorfs.Op) error {
		if o.Kind == errorfs.OpFileSync && o.Path == "/d/snapshots" {
			return killed
		}
		return nil
	}))
	require.ErrorIs(t, s.Receive(at(9), writeState("another")), killed)
	newest := func(fs vfs.FS) protocol.Position {
		s, err := OpenSnapshots(fs, "/d/snapshots")
		require.NoError(t, err)
		h, _, err := s.Newest()
		require.NoError(t, err)
		return h.Cursor.Position
	}
	require.EqualValues(t, 9, newest(mem))
	require.EqualValues(t, 9, newest(mem.Crash(0, nil)), "after a loss of power")
}

func TestOfSnapshotsAtOnePositionTheFurthestCounts(t *testing.T) {
	s, err := OpenSnapshots(vfs.NewMem(), "snapshots")
	require.NoError(t, err)
	at := func(round protocol.Round) SnapshotHeader {
		m := member.Bootstrap(order.Begin(2, true), nil)
		m.Cursor.Position, m.Cursor.Next.Round = 5, round
		m.Cursor.Points[0].Index, m.Cursor.Points[1].Index = protocol.Index(round), protocol.Index(round)
		return SnapshotHeader{Meta: m, HasState: true}
	}
	for _, round := range []protocol.Round{3, 8, 4} { // the last one was started before the second one
		require.NoError(t, s.Write(at(round), writeState("state")))
	}
	h, _, err := s.Newest()
	require.NoError(t, err)
	require.EqualValues(t, 8, h.Cursor.Next.Round)
	f, err := s.At(protocol.Base{Index: 8}, 2)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestDamagedSnapshotsAreNoticed(t *testing.T) {
	fs := vfs.NewMem()
	s, err := OpenSnapshots(fs, "s")
	require.NoError(t, err)
	require.NoError(t, s.Write(SnapshotHeader{Meta: metaAt(1, 1, 1), HasState: true}, writeState(strings.Repeat("x", 50))))
	name := s.path(1)
	whole := readAll(t, fs, name)
	for i := range whole {
		damaged := append([]byte(nil), whole...)
		damaged[i] ^= 4
		writeAll(t, fs, name, damaged)
		f, err := s.Open(1)
		if err == nil {
			err = f.Verify()
			require.NoError(t, f.Close())
		}
		require.Error(t, err, "byte %d of %d", i, len(whole))
	}
	for _, n := range []int{0, 10, 20, len(whole) - 1} {
		writeAll(t, fs, name, whole[:n])
		_, err := s.Open(1)
		require.Error(t, err, "cut to %d bytes", n)
	}
}

// TestADamagedSnapshotIsNotReadToItsEnd: a state machine on disk may keep what it has read, once it has seen the
// end.
func TestADamagedSnapshotIsNotReadToItsEnd(t *testing.T) {
	fs := vfs.NewMem()
	s, err := OpenSnapshots(fs, "s")
	require.NoError(t, err)
	state := strings.Repeat("0123456789", 1<<14)
	header := SnapshotHeader{Meta: metaAt(1, 1, 1), HasState: true}
	require.NoError(t, s.Write(header, writeState(state)))
	f, err := s.At(protocol.Base{Index: 1}, 1)
	require.NoError(t, err)
	got, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, state, string(got))
	require.NoError(t, f.Close())

	whole := readAll(t, fs, s.path(1))
	for _, at := range []int{len(whole) - len(state), len(whole) / 2, len(whole) - snapTrailer - 1} {
		damaged := append([]byte(nil), whole...)
		damaged[at] ^= 1
		writeAll(t, fs, s.path(1), damaged)
		_, err := s.At(protocol.Base{Index: 1}, 1)
		var corrupt *protocol.CorruptError
		require.ErrorAs(t, err, &corrupt, "nothing of it is given out")
		f, err := s.Open(1)
		require.NoError(t, err)
		_, err = io.ReadAll(f)
		require.ErrorAs(t, err, &corrupt, "it has no good end")
		require.NoError(t, f.Close())
	}
}

// hasty is a state machine that reads the beginning of a state only.
type hasty struct {
	member.StateMachine
	began func()
}

func (h hasty) Restore(r io.Reader) error {
	_, err := r.Read(make([]byte, 1))
	h.began()
	return err
}

// worn are files whose second half is damaged, from some moment on.
type worn struct {
	vfs.FS
	damaged *bool
}

func (w worn) Open(name string) (vfs.File, error) {
	f, err := w.FS.Open(name)
	return wornFile{f, w.damaged}, err
}

type wornFile struct {
	vfs.File
	damaged *bool
}

func (f wornFile) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(b, at)
	if n > 0 && at > 1<<19 && *f.damaged {
		b[0] ^= 1
	}
	return n, err
}

// TestAStartReadsTheRestOfAState, which the state machine need not do.
func TestAStartReadsTheRestOfAState(t *testing.T) {
	damaged := false
	s, err := OpenSnapshots(worn{vfs.NewMem(), &damaged}, "s")
	require.NoError(t, err)
	header := SnapshotHeader{Meta: metaAt(1, 1, 1), HasState: true}
	require.NoError(t, s.Write(header, writeState(strings.Repeat("0123456789", 1<<17))))
	_, _, err = Restore(s, hasty{began: func() {}}, nil)
	require.NoError(t, err)
	_, _, err = Restore(s, hasty{began: func() { damaged = true }}, nil)
	require.ErrorAs(t, err, new(*protocol.CorruptError))
}

// TestAReceivedSnapshotIsReadAgain: the bytes on disk count, not those that were sent. If they are damaged, the
// earlier snapshots are kept.
func TestAReceivedSnapshotIsReadAgain(t *testing.T) {
	fs := &flipper{FS: vfs.NewMem()}
	s, err := OpenSnapshots(fs, "s")
	require.NoError(t, err)
	require.NoError(t, s.Receive(SnapshotHeader{Meta: metaAt(1, 1, 1), HasState: true}, writeState("old")))
	fs.flips = true
	var corrupt *protocol.CorruptError
	require.ErrorAs(t, s.Receive(SnapshotHeader{Meta: metaAt(2, 2, 1), HasState: true}, writeState("new")), &corrupt)
	fs.flips = false
	names, err := fs.List("s")
	require.NoError(t, err)
	require.Len(t, names, 1, "nothing is left of it")
	f, err := s.At(protocol.Base{Index: 1}, 1)
	require.NoError(t, err)
	got, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, "old", string(got))
	require.NoError(t, f.Close())
}

// flipper is a disk that stores other bytes than were written.
type flipper struct {
	vfs.FS
	flips bool
}

func (f *flipper) Create(name string) (vfs.File, error) {
	file, err := f.FS.Create(name)
	return &flippedFile{file, f.flips}, err
}

type flippedFile struct {
	vfs.File
	flips bool
}

func (f *flippedFile) Write(b []byte) (int, error) {
	if b = append([]byte(nil), b...); f.flips {
		b[len(b)-snapTrailer-1] ^= 1 // the last byte of the state
	}
	return f.File.Write(b)
}

func readAll(t *testing.T, fs vfs.FS, name string) []byte {
	f, err := fs.Open(name)
	require.NoError(t, err)
	defer f.Close()
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	return b
}

func writeAll(t *testing.T, fs vfs.FS, name string, b []byte) {
	f, err := fs.Create(name)
	require.NoError(t, err)
	_, err = f.Write(append([]byte(nil), b...))
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestADirectoryBelongsToOneMember(t *testing.T) {
	fs := vfs.NewMem()
	life, lock, err := Enter(fs, "d", Owner{Cluster: 7, Member: 1}, counter())
	require.NoError(t, err)
	require.EqualValues(t, 1, life.Incarnation)
	var dir *member.DirError
	_, _, err = Enter(fs, "d", Owner{Cluster: 7, Member: 1}, counter())
	require.ErrorAs(t, err, &dir, "in use")
	require.NoError(t, lock.Close())
	_, _, err = Enter(fs, "d", Owner{Cluster: 8, Member: 1}, counter())
	require.ErrorAs(t, err, &dir)
	_, _, err = Enter(fs, "d", Owner{Cluster: 7, Member: 2}, counter())
	require.ErrorAs(t, err, &dir)
	life, lock, err = Enter(fs, "d", Owner{Cluster: 7, Member: 1}, counter())
	require.NoError(t, err)
	require.EqualValues(t, 2, life.Incarnation, "each life has its own session")
	require.NoError(t, lock.Close())
}

// TestAnEarlierProgramDoesNotOpenAMergedLog: it would mistake the numbers of sessions. The log of a single instance
// has the same meaning for it.
func TestAnEarlierProgramDoesNotOpenAMergedLog(t *testing.T) {
	fs := vfs.NewMem()
	enter := func() identity {
		_, lock, err := Enter(fs, "d", Owner{Cluster: 7, Member: 1}, counter())
		require.NoError(t, err)
		require.NoError(t, lock.Close())
		id, err := readIdentity(fs, "d", 7, 1)
		require.NoError(t, err)
		return id
	}
	id := enter()
	require.Equal(t, formatSingle, id.Format)
	id.Begun = 3 // as an earlier program left it
	require.NoError(t, writeIdentity(fs, "d", id))
	begun, err := Begin(fs, "d", 7, 1, 5)
	require.NoError(t, err)
	require.Equal(t, 3, begun)
	id = enter()
	require.Equal(t, formatMerged, id.Format)
	id.Format = format.Newest() + 1
	require.NoError(t, writeIdentity(fs, "d", id))
	_, _, err = Enter(fs, "d", Owner{Cluster: 7, Member: 1}, counter())
	require.ErrorContains(t, err, "was written in format 9 by a later version of braid, "+
		"and this program knows formats up to 8: ")
}

// TestAnEarlierProgramDoesNotOpenALogThatHasGrown: it would apply the first instance alone. That is durable before the
// log has the entry that makes several instances, and before the directory has a snapshot of several. A log that began
// with several was never opened by such a program.
func TestAnEarlierProgramDoesNotOpenALogThatHasGrown(t *testing.T) {
	fs := vfs.NewMem()
	format := func(dir string) int {
		id, err := readIdentity(fs, dir, 7, 1)
		require.NoError(t, err)
		return id.Format
	}
	open := func(dir string, begin order.Cursor) *Opened {
		o, err := Open(Config{FS: fs, Dir: dir, Cluster: 7, Self: 1, Chance: counter(), Begin: begin,
			Members: []protocol.Member{{ID: 1}}, Machine: &membertest.History{}, LogSegment: 1 << 16, BodySegment: 1 << 16})
		require.NoError(t, err)
		return o
	}
	for name, grow := range map[string]func(o *Opened) error{
		"instances begin": (*Opened).Grow,
		"the entry that makes several": func(o *Opened) error {
			one, several := protocol.NewReshape(1), protocol.NewReshape(2)
			one.Seal(1, 1, make([]byte, protocol.HeadSize))
			several.Seal(2, 1, make([]byte, protocol.HeadSize))
			if err := o.Log.Append([]wal.Record{
				member.WALRecord(1, &protocol.Record{Kind: protocol.RecordEntry, Entry: one})}); err != nil {
				return err
			}
			require.Equal(t, formatSingle, format(o.Dir()))
			return o.Log.Append([]wal.Record{
				member.WALRecord(1, &protocol.Record{Kind: protocol.RecordEntry, Entry: several})})
		},
		"a snapshot of another member": func(o *Opened) error {
			return o.Snapshots.Receive(SnapshotHeader{Meta: member.Bootstrap(order.Begin(2, true), o.Meta.Config.Members)}, nil)
		},
	} {
		o := open(name, order.Begin(1, false))
		require.NoError(t, o.Snapshots.Write(SnapshotHeader{Meta: o.Meta}, nil))
		require.Equal(t, formatSingle, format(name))
		require.NoError(t, grow(o))
		require.Equal(t, formatGrown, format(name))
		require.NoError(t, o.Grow(), "it has grown already")
		require.NoError(t, o.Close())
		o = open(name, order.Begin(1, false))
		require.Equal(t, formatGrown, format(name))
		require.NoError(t, o.Close())
	}
	o := open("merged", order.Begin(2, true))
	require.NoError(t, o.Grow())
	require.NoError(t, o.Close())
	require.Equal(t, formatMerged, format("merged"))
}

// With other settings the same log would have other epochs, and promises would be about other slots.
func TestADirectoryKeepsTheSettingsOfItsEpochs(t *testing.T) {
	const fixed = "slots 32-32, shares equal, policy simple, bans 8-256"
	for _, c := range []struct {
		begun, told, refused string
		format               int
	}{
		{begun: onlyEpochs, told: onlyEpochs, format: formatSingle},
		{begun: fixed, told: fixed, format: formatEpochs},
		{begun: fixed, told: onlyEpochs, refused: `with epochs of "slots 32-32, shares equal`},
		{begun: onlyEpochs, told: fixed, refused: `with epochs of "slots 64-1024, shares by load`},
		{begun: "", told: onlyEpochs, format: formatSingle}, // by an earlier program, which had these
		{begun: "", told: fixed, refused: `not "slots 32-32`},
	} {
		fs := vfs.NewMem()
		_, lock, err := Enter(fs, "d", Owner{Cluster: 7, Member: 1, Epochs: c.begun}, counter())
		require.NoError(t, err)
		require.NoError(t, lock.Close())
		_, err = Begin(fs, "d", 7, 1, 1) // merged or not, the format is the latest that it needs
		require.NoError(t, err)
		life, lock, err := Enter(fs, "d", Owner{Cluster: 7, Member: 1, Epochs: c.told}, counter())
		id, damaged := readIdentity(fs, "d", 7, 1)
		require.NoError(t, damaged)
		if c.refused != "" {
			var refused *member.DirError
			require.ErrorAs(t, err, &refused)
			require.ErrorContains(t, err, c.refused)
			require.EqualValues(t, 1, id.Incarnation, "no life began")
			continue
		}
		require.NoError(t, err)
		require.EqualValues(t, 2, life.Incarnation)
		require.Equal(t, max(c.format, formatMerged), id.Format)
		require.NoError(t, lock.Close())
	}
}

// Members that elect by other quorums than those that decided may not know the decisions.
func TestADirectoryKeepsItsQuorums(t *testing.T) {
	for _, c := range []struct {
		begun, told string
		format      int
	}{
		{"", "majority", formatSingle}, {"majority", "", formatSingle}, {"4/2", "4/2", formatQuorums},
		{"4/2", "majority", 0}, {"4/2", "", 0}, {"majority", "4/2", 0}, {"4/2", "grid:2", 0},
	} {
		fs := vfs.NewMem()
		_, lock, err := Enter(fs, "d", Owner{Cluster: 7, Member: 1, Quorums: c.begun}, counter())
		require.NoError(t, err)
		require.NoError(t, lock.Close())
		life, lock, err := Enter(fs, "d", Owner{Cluster: 7, Member: 1, Quorums: c.told}, counter())
		id, damaged := readIdentity(fs, "d", 7, 1)
		require.NoError(t, damaged)
		if c.format == 0 {
			var refused *member.DirError
			require.ErrorAs(t, err, &refused)
			require.ErrorContains(t, err, "was begun with quorums")
			require.EqualValues(t, 1, id.Incarnation, "no life began")
			continue
		}
		require.NoError(t, err)
		require.EqualValues(t, 2, life.Incarnation)
		require.Equal(t, c.format, id.Format)
		require.NoError(t, lock.Close())
	}
}

func TestADirectoryKeepsWithHowManyInstancesItBegan(t *testing.T) {
	fs := vfs.NewMem()
	_, lock, err := Enter(fs, "d", Owner{Cluster: 7, Member: 1}, counter())
	require.NoError(t, err)
	for _, told := range []int{3, 5, 1} {
		begun, err := Begin(fs, "d", 7, 1, told)
		require.NoError(t, err)
		require.Equal(t, 3, begun)
	}
	require.NoError(t, lock.Close())
	life, lock, err := Enter(fs, "d", Owner{Cluster: 7, Member: 1}, counter())
	require.NoError(t, err)
	require.EqualValues(t, 2, life.Incarnation)
	require.NoError(t, lock.Close())
	begun, err := Begin(fs, "d", 7, 1, 9)
	require.NoError(t, err)
	require.Equal(t, 3, begun)
}

// TestSessionsAreShared: by all instances, also with one, because others may begin later. Groups of keys have numbers
// of their own.
func TestSessionsAreShared(t *testing.T) {
	for _, begin := range []order.Cursor{order.Begin(1, false), order.Begin(3, true), order.BeginKeyed(3)} {
		o := Opened{Begin: begin}
		require.Equal(t, !begin.Keyed, o.Session().Shared())
	}
}
