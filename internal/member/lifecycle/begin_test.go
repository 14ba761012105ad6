package lifecycle

import (
	"bytes"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

func TestAnInstanceBeginsWhereTheGlobalLogSays(t *testing.T) {
	log, err := wal.Open(wal.Options{FS: vfs.NewMem(), Dir: "log", Identity: []byte("x")})
	require.NoError(t, err)
	defer log.Close()
	state := protocol.Record{Kind: protocol.RecordState, State: protocol.HardState{Term: 7, Vote: 2, Commit: 1}}
	held := []wal.Record{member.WALRecord(3, &state)}
	for i := range protocol.Index(4) {
		held = append(held, entryRecord(3, i+1, 7))
	}
	require.NoError(t, log.Append(held))
	u, err := RecoverPending(log, 3)
	require.NoError(t, err)

	config := protocol.Config{Members: []protocol.Member{{ID: 1}}}
	rec, records, err := u.Begin(protocol.Base{Config: config, Round: 9})
	require.NoError(t, err)
	require.Empty(t, records)
	require.Len(t, rec.Entries, 4)
	require.Equal(t, protocol.HardState{Term: 7, Vote: 2, Commit: 1}, rec.State, "what it promised it keeps")
	require.EqualValues(t, 9, rec.Base.Round)

	rec, records, err = u.Begin(protocol.Base{Index: 2, Term: 7, Config: config})
	require.NoError(t, err)
	require.Empty(t, records, "the log goes on after the snapshot")
	require.Len(t, rec.Entries, 2)
	require.EqualValues(t, 2, rec.State.Commit)

	for _, base := range []protocol.Base{{Index: 2, Term: 8}, {Index: 5, Term: 7}} {
		rec, records, err = u.Begin(base)
		require.NoError(t, err)
		require.Len(t, records, 1, "it does not")
		require.Empty(t, rec.Entries)
		require.Equal(t, base.Index, rec.State.Commit)
		require.EqualValues(t, 7, rec.State.Term)
	}
}

func entryRecord(instance protocol.InstanceID, index protocol.Index, term protocol.Term) wal.Record {
	e := membertest.EntryOf(index, membertest.Sealed(uint64(index), "x"))
	e.Seal(index, term, make([]byte, protocol.HeadSize))
	return member.WALRecord(instance, &protocol.Record{Kind: protocol.RecordEntry, Entry: e})
}

// TestAnInstanceThatIsNewerThanDamage: a snapshot stands for a record, and that record is damaged.
// Then the log is reshaped, and a snapshot names an instance that has written nothing of its own
// yet. The record cannot have been that instance's, so the log opens.
func TestAnInstanceThatIsNewerThanDamage(t *testing.T) {
	fs := vfs.NewMem()
	meta := membertest.WovenMeta(2)
	meta.Cursor.Points[0].Index = 2
	options := wal.Options{FS: fs, Dir: "log", Identity: []byte("x"), Cover: CoverOf(&meta, false)}
	log, err := wal.Open(options)
	require.NoError(t, err)
	write := func(records ...wal.Record) {
		require.NoError(t, log.Append(records))
		require.NoError(t, log.Sync())
	}
	state := protocol.Record{Kind: protocol.RecordState, State: protocol.HardState{Term: 7, Vote: 2, Commit: 2}}
	spoilt := entryRecord(1, 1, 7)
	write(member.WALRecord(1, &state), spoilt)
	write(member.WALRecord(1, &state), entryRecord(1, 2, 7))
	write(entryRecord(1, 3, 7))
	_, records, err := NewUnborn(2).Begin(protocol.Base{Config: meta.Config})
	require.NoError(t, err)
	write(records...)
	write(entryRecord(1, 4, 7))
	require.NoError(t, log.Close())

	spoil(t, fs, "log/0000000000000001.wal", spoilt.Parts[0])
	log, err = wal.Open(options)
	require.NoError(t, err)
	require.Len(t, log.Damaged(), 1)
	rec, err := Recover(log, 2, meta)
	require.NoError(t, err)
	require.Zero(t, rec.State)
	require.Empty(t, rec.Entries)
	require.NoError(t, log.Close())
}

// spoil flips a bit of some bytes in a file.
func spoil(t *testing.T, fs vfs.FS, name string, what []byte) {
	t.Helper()
	f, err := fs.OpenReadWrite(name)
	require.NoError(t, err)
	defer f.Close()
	all, err := io.ReadAll(f)
	require.NoError(t, err)
	at := bytes.Index(all, what)
	require.Positive(t, at)
	_, err = f.WriteAt([]byte{what[0] ^ 1}, int64(at))
	require.NoError(t, err)
}

// TestAMemberThatHasBegunIsClosedWhenItStarts: the first record behind a seal says which instances ended, whatever
// commit index their logs show.
func TestAMemberThatHasBegunIsClosedWhenItStarts(t *testing.T) {
	log, err := wal.Open(wal.Options{FS: vfs.NewMem(), Dir: "log", Identity: []byte("x")})
	require.NoError(t, err)
	defer log.Close()
	meta := member.Bootstrap(order.Begin(1, false), []protocol.Member{{ID: 1}})
	state := protocol.Record{Kind: protocol.RecordState, State: protocol.HardState{Term: 7, Commit: 1}}
	held := []wal.Record{member.WALRecord(1, &state)}
	for i := range protocol.Index(4) {
		held = append(held, entryRecord(1, i+1, 7))
	}
	require.NoError(t, log.Append(held))
	found, err := FindInstances(log, &meta)
	require.NoError(t, err)
	require.False(t, found.InForce[0].Closed)

	for _, ended := range [][]protocol.EndedLog{{{Instance: 1, Index: 3}}, {{Instance: 2, Index: 9}}} {
		next := protocol.Base{Config: meta.Config, Ended: ended}
		_, records, err := NewUnborn(ended[0].Instance + 1).Begin(next)
		require.NoError(t, err)
		require.NoError(t, log.Append(records))
		found, err = FindInstances(log, &meta)
		require.NoError(t, err)
		require.True(t, found.InForce[0].Closed)
		require.EqualValues(t, 3, found.InForce[0].Recovered.State.Commit)
	}
	require.Equal(t, []protocol.InstanceID{1, 2}, slices.Sorted(slices.Values(found.ended)), "two seals")
	require.Zero(t, found.pending[2].State.Commit, "it has nothing of what was decided")
}

// TestTheEndIsWhereAllLogsLead: entries count that cells hold, as far as there is no gap, and those of instances behind
// a seal, if the seal counts.
func TestTheEndIsWhereAllLogsLead(t *testing.T) {
	meta := member.Bootstrap(order.Begin(1, false), []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}})
	meta.Config.Profile.Version = 1
	at := func(i protocol.Index) protocol.Entry {
		return membertest.EntryOf(i, membertest.Sealed(uint64(i), "x"))
	}
	log := func(entries ...protocol.Entry) protocol.Recovered { return protocol.Recovered{Entries: entries} }
	end := func(rec protocol.Recovered, pending *Pending, accepted ...protocol.Entry) (protocol.Position, bool) {
		f := &FoundInstances{InForce: []member.InstanceLog{{Instance: 1, Recovered: &rec, Accepted: accepted}}}
		if pending != nil {
			f.pending = map[protocol.InstanceID]*Pending{2: pending}
		}
		return f.End(&meta, f.Logs())
	}
	n, all := end(log(at(1)), nil, at(5), at(3), at(2))
	require.EqualValues(t, 3, n)
	require.True(t, all)

	for version, want := range map[uint64]protocol.Position{2: 6, 3: 4} {
		seal := protocol.Seal{Profile: protocol.Profile{Version: version, Core: "x"}, Members: meta.Config,
			Instances: 1}
		sealed := protocol.NewSeal(seal)
		sealed.Seal(3, 1, make([]byte, protocol.HeadSize))
		behind := &Pending{recovery{Recovered: log(at(1), at(2)), instance: 2}}
		n, all = end(log(at(1), at(2), sealed, at(4)), behind)
		require.Equal(t, want, n, "version %d", version)
		require.False(t, all)
	}
	cut := &Pending{recovery{Recovered: log(at(8), at(9)), instance: 2}}
	n, _ = end(log(at(1)), cut)
	require.EqualValues(t, 1, n, "it goes on from a snapshot that is gone")
}
