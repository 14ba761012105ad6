package member

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

func newTestApplier(sm StateMachine, meta Meta, skip protocol.Position, load Loader) *Applier {
	if len(meta.Cursor.Points) == 0 {
		meta.Cursor = order.Begin(1, false)
	}
	return NewApplier(sm, meta, life, skip, load)
}

func TestApplierAppliesOnceAndAnswers(t *testing.T) {
	sm := &history{}
	a := newTestApplier(sm, Meta{}, 0, nil)
	var results []any
	b := NewBatch(0, 0, 0)
	for _, c := range []string{"a", "b"} {
		b.Add([]byte(c), func(r any, err error) { require.NoError(t, err); results = append(results, r) })
	}
	b.Seal(life, 1, 1)
	again := sealed(1, "a", "b")
	lost := NewBatch(0, 0, 0)
	lost.Add([]byte("a"), func(_ any, err error) { require.ErrorIs(t, err, ErrResultUnknown); results = append(results, "lost") })
	lost.Seal(life, 1, 1)

	require.NoError(t, a.Apply(CommittedEntries{Instance: 1, Own: []*Batch{b}, Entries: []protocol.Entry{
		{Index: 1, Term: 1, Kind: protocol.EntryNoop}, entryOf(2, b), entryOf(3, again),
	}}))
	require.Equal(t, []string{"2:a", "3:b"}, sm.lines)
	require.Equal(t, []any{1, 2}, results)
	require.NoError(t, a.Apply(CommittedEntries{Instance: 1, Own: []*Batch{lost}, Entries: []protocol.Entry{entryOf(4, lost)}}))
	require.Equal(t, []any{1, 2, "lost"}, results, "its result went to an earlier appearance")
	require.EqualValues(t, 6, a.Cursor().Position, "duplicates keep their positions")
	require.NoError(t, a.Check())
}

func TestApplierSkipsWhatADiskAlreadyHolds(t *testing.T) {
	sm := &history{}
	a := newTestApplier(sm, Meta{}, 2, nil)
	a.session = later
	require.NoError(t, a.Apply(CommittedEntries{Instance: 1, Entries: []protocol.Entry{entryOf(1, sealed(1, "a", "b", "c")), entryOf(2, sealed(1, "a", "b", "c"))}}))
	require.Equal(t, []string{"3:c"}, sm.lines, "half an entry was applied before the crash; the duplicate is known")
}

func TestApplierLoadsWhatIsNotResident(t *testing.T) {
	sm := &history{}
	whole := sealed(1, "far away")
	a := newTestApplier(sm, Meta{}, 0, func(_ protocol.InstanceID, e *protocol.Entry) error {
		e.Payload = whole.Entry.Payload
		return nil
	})
	e := entryOf(1, whole)
	e.Payload = nil
	require.NoError(t, a.Apply(CommittedEntries{Instance: 1, Entries: []protocol.Entry{e}}))
	require.Equal(t, []string{"1:far away"}, sm.lines)
}

func TestApplierStopsWhenTheStateMachineFails(t *testing.T) {
	sm := &history{err: errors.New("disk full")}
	a := newTestApplier(sm, Meta{}, 0, nil)
	require.ErrorContains(t, a.Apply(CommittedEntries{Instance: 1, Entries: []protocol.Entry{entryOf(1, sealed(1, "a"))}}), "disk full")
}

func TestApplierSnapshotCarriesSessions(t *testing.T) {
	sm := &history{}
	a := newTestApplier(sm, Meta{}, 0, nil)
	first := sealed(1, "a")
	require.NoError(t, a.Apply(CommittedEntries{Instance: 1, Entries: []protocol.Entry{entryOf(1, first)}}))
	meta := a.Meta()

	other := &history{}
	b := newTestApplier(other, Meta{}, 0, nil)
	failed := 0
	waiting := NewBatch(0, 0, 0)
	waiting.Add([]byte("z"), func(_ any, err error) { require.ErrorIs(t, err, ErrResultUnknown); failed++ })
	waiting.Seal(life, 9, 9)
	b.Instances[0].own = []ownBatch{{1, waiting}}
	require.NoError(t, b.Install(meta, strings.NewReader("1:a")))
	require.Equal(t, 1, failed)
	require.NoError(t, b.Apply(CommittedEntries{Instance: 1, Entries: []protocol.Entry{entryOf(2, first), entryOf(3, sealed(2, "b"))}}))
	require.Equal(t, []string{"1:a", "3:b"}, other.lines)
}

func TestApplierTrustsASnapshotThatIsAheadOfItsLog(t *testing.T) {
	// The sender's state on disk held command 2 while its log was replayed only up to 1.
	ahead := newTestApplier(&history{}, Meta{}, 2, nil)
	ahead.session = later
	require.NoError(t, ahead.Apply(CommittedEntries{Instance: 1, Entries: []protocol.Entry{entryOf(1, sealed(1, "a"))}}))
	meta := ahead.Meta()
	require.EqualValues(t, 1, meta.Cursor.Position)
	require.EqualValues(t, 2, meta.Command)

	sm := &history{}
	b := newTestApplier(sm, Meta{}, 0, nil)
	require.NoError(t, b.Install(meta, strings.NewReader("1:a 2:b")))
	require.NoError(t, b.Apply(CommittedEntries{Instance: 1, Entries: []protocol.Entry{entryOf(2, sealed(2, "b")), entryOf(3, sealed(3, "c"))}}))
	require.Equal(t, []string{"1:a", "2:b", "3:c"}, sm.lines)
}

// TestACommandOfThisLifeIsNotInAStateOfBefore: it stands where the state is already, so the state is of another log.
// It is not said to have taken effect.
func TestACommandOfThisLifeIsNotInAStateOfBefore(t *testing.T) {
	sm := &history{}
	a := newTestApplier(sm, Meta{}, 5, nil)
	var told error
	b := NewBatch(0, 0, 0)
	b.Add([]byte("a"), func(_ any, err error) { told = err })
	b.Seal(life, 1, 1)
	err := a.Apply(CommittedEntries{Instance: 1, Own: []*Batch{b}, Entries: []protocol.Entry{entryOf(1, b)}})
	require.Equal(t, &StateAheadError{State: 5, Log: 0}, err)
	require.ErrorIs(t, told, ErrMaybeCommitted)
	require.NotErrorIs(t, told, ErrResultUnknown)
}

// TestNobodyReadsAStateOfAnotherLog: a read point is applied, and the state that was found at the start is further.
func TestNobodyReadsAStateOfAnotherLog(t *testing.T) {
	a := newTestApplier(&history{}, Meta{}, 5, nil)
	a.session = later
	at := NewApplied(a)
	g := &ReadGroup{Done: func(error) { t.Fatal("it is answered") }}
	require.True(t, at.Ask(g, 0, at.Shape()))
	require.NoError(t, a.Apply(CommittedEntries{Instance: 1, Entries: []protocol.Entry{entryOf(1, sealed(1, "a"))}}))
	_, ready := at.ReadPoint(g, 1, 1)
	require.False(t, ready)
	require.True(t, at.Doubtful())
	_, _, _, err := at.Note(a)
	require.Equal(t, &StateAheadError{State: 5, Log: 1}, err)
}

// TestSkippedCommandsOfAnOwnBatch: commands that a state has already are not applied again. The
// results of the commands after them are not taken for theirs.
func TestSkippedCommandsOfAnOwnBatch(t *testing.T) {
	for _, commands := range []int{3, 2 * applyBytes / callOverhead} {
		for skip := range 4 {
			sm := &history{}
			a := newTestApplier(sm, Meta{}, protocol.Position(skip), nil)
			a.brought = 0 // the state came with a snapshot
			b := NewBatch(0, 0, 0)
			answers := make([]string, commands)
			freed := 0
			b.Free = func(*Batch) { freed++ }
			for i := range commands {
				b.Add([]byte(fmt.Sprint(i)), func(result any, err error) { answers[i] += fmt.Sprint(result, err) })
			}
			b.Seal(life, 1, 1)
			require.NoError(t, a.Apply(CommittedEntries{Instance: 1, Own: []*Batch{b}, Entries: []protocol.Entry{entryOf(1, b)}}))
			require.Equal(t, 1, freed, "settled once")
			for i, answer := range answers {
				want := fmt.Sprint(nil, ErrResultUnknown)
				if i >= skip {
					want = fmt.Sprint(i-skip+1, nil)
				}
				require.Equal(t, want, answer, "command %d of %d with the first %d skipped", i, commands, skip)
			}
		}
	}
}

// TestAMalformedBatchTakesNoEffect: a malformed batch may be in the log from before leaders
// looked. It must not stop all members, because none would ever start again.
func TestAMalformedBatchTakesNoEffect(t *testing.T) {
	sm := &history{}
	a := newTestApplier(sm, Meta{}, 0, nil)
	var found []protocol.Index
	a.Malformed = func(_ protocol.InstanceID, index protocol.Index, err error) {
		require.Error(t, err)
		found = append(found, index)
	}
	bad := NewBatch(0, 0, 0)
	bad.Add([]byte("a"), func(_ any, err error) { require.NoError(t, err) })
	bad.Entry.Payload = append(bad.Entry.Payload, 7, 'x') // says that seven bytes follow, and one does
	bad.Entry.Count = 2
	bad.Seal(life, 1, 1)
	require.NoError(t, a.Apply(CommittedEntries{Instance: 1, Own: []*Batch{bad}, Entries: []protocol.Entry{
		entryOf(1, bad), {Index: 2, Term: 1, Kind: protocol.EntryReshape, Low: 3}, entryOf(3, sealed(3, "b")),
	}}))
	require.Equal(t, []protocol.Index{1}, found)
	require.Equal(t, []string{"1:a", "4:b"}, sm.lines, "what can be read of it is applied, on all members alike")
	require.NoError(t, a.Check())
}
