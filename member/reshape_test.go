package member

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/wal"
)

func reshapeAt(index protocol.Index, instances int) protocol.Entry {
	e := protocol.NewReshape(instances)
	e.Seal(index, 1, make([]byte, protocol.HeadSize))
	return e
}

func TestWhatARetiredInstanceBringsLaterIsVoid(t *testing.T) {
	sm := &history{}
	var got []string
	var void []*Batch
	a := NewApplier(sm, wovenMeta(2), life, 0, nil)
	a.Void = func(b *Batch) { void = append(void, b) }
	require.NoError(t, a.Apply(Commitment{Instance: 1, Entries: []protocol.Entry{reshapeAt(1, 1)}}))
	inTime, early, late := told(1, "in time", &got), told(2, "early", &got), told(3, "late", &got)
	require.NoError(t, a.Apply(Commitment{Instance: 2, Own: []*Batch{inTime, early}, Entries: []protocol.Entry{entryOf(1, inTime), entryOf(2, early)}}))
	require.Equal(t, []string{"1:in time"}, sm.lines, "the round in which it was reshaped is the last one")
	require.Equal(t, []*Batch{early}, void)
	require.Zero(t, a.Resident(), "what is dropped is not in memory")
	require.Len(t, a.Configs(), 1)
	require.NoError(t, a.Apply(Commitment{Instance: 2, Own: []*Batch{late}, Entries: []protocol.Entry{entryOf(3, late)}}))
	require.Equal(t, []*Batch{early, late}, void)
	require.NoError(t, a.Check())
}

func TestWhatASnapshotRetiredIsNotCertain(t *testing.T) {
	whole := NewApplier(&history{}, wovenMeta(2), life, 0, nil)
	require.NoError(t, whole.Apply(Commitment{Instance: 1, Entries: []protocol.Entry{reshapeAt(1, 1)}}))
	require.NoError(t, whole.Apply(Commitment{Instance: 2, Entries: []protocol.Entry{skipAt(1, 1)}}))

	var got []string
	a := NewApplier(&history{}, wovenMeta(2), life, 0, nil)
	a.Void = func(*Batch) { t.Error("it may have taken effect") }
	waits, late := told(1, "waits", &got), told(2, "late", &got)
	require.NoError(t, a.Apply(Commitment{Instance: 2, Own: []*Batch{waits}, Entries: []protocol.Entry{entryOf(1, waits)}}))
	require.NoError(t, a.Install(whole.Meta(), strings.NewReader("")))
	require.NoError(t, a.Apply(Commitment{Instance: 2, Own: []*Batch{late}, Entries: []protocol.Entry{entryOf(2, late)}}))
	require.Equal(t, []string{"waits " + ErrMaybeCommitted.Error(), "late " + ErrMaybeCommitted.Error()}, got)
}

func TestBatchesOfARetiredInstanceAreProposedElsewhere(t *testing.T) {
	c, in := wovenInstance(2, protocol.Leader, 1)
	var out Outbox
	var got []string
	b := told(9, "x", &got)
	in.Propose(0, b, &out)
	void, unsure := in.Retire(0)
	require.Equal(t, []*Batch{b}, void)
	require.Empty(t, unsure)
	require.Zero(t, in.Pending())

	in.Propose(0, b, &out)
	require.EqualValues(t, 2, b.Entry.ID.Seq, "sealed anew")
	void, unsure = in.Retire(5)
	require.Empty(t, void)
	require.Equal(t, []*Batch{b}, unsure, "a snapshot stood for entries that the core has not seen")
	c.status.Commit = 5
	in.Propose(0, b, &out)
	void, _ = in.Retire(5)
	require.Len(t, void, 1)
}

func TestAnInstanceBeginsWhereTheGlobalLogSays(t *testing.T) {
	log, err := wal.Open(wal.Options{FS: vfs.NewMem(), Dir: "log", Identity: []byte("x")})
	require.NoError(t, err)
	defer log.Close()
	state := protocol.Record{Kind: protocol.RecordState, State: protocol.HardState{Term: 7, Vote: 2, Commit: 1}}
	records := []wal.Record{walRecord(3, &state)}
	for i := range protocol.Index(4) {
		e := entryOf(i+1, sealed(uint64(i+1), "x"))
		e.Seal(i+1, 7, make([]byte, protocol.HeadSize))
		records = append(records, walRecord(3, &protocol.Record{Kind: protocol.RecordEntry, Entry: e}))
	}
	require.NoError(t, log.Append(records))
	u, err := RecoverUnborn(log, 3)
	require.NoError(t, err)

	config := protocol.Config{Members: []protocol.Member{{ID: 1}}}
	rec, restart, err := u.Begin(protocol.Base{Config: config, Round: 9})
	require.NoError(t, err)
	require.False(t, restart)
	require.Len(t, rec.Entries, 4)
	require.Equal(t, protocol.HardState{Term: 7, Vote: 2, Commit: 1}, rec.State, "what it promised it keeps")
	require.EqualValues(t, 9, rec.Base.Round)

	rec, restart, err = u.Begin(protocol.Base{Index: 2, Term: 7, Config: config})
	require.NoError(t, err)
	require.False(t, restart, "the log goes on after the snapshot")
	require.Len(t, rec.Entries, 2)
	require.EqualValues(t, 2, rec.State.Commit)

	for _, base := range []protocol.Base{{Index: 2, Term: 8}, {Index: 5, Term: 7}} {
		rec, restart, err = u.Begin(base)
		require.NoError(t, err)
		require.True(t, restart, "it does not")
		require.Empty(t, rec.Entries)
		require.Equal(t, base.Index, rec.State.Commit)
		require.EqualValues(t, 7, rec.State.Term)
	}
}
