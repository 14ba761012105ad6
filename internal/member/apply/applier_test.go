package apply

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

func newTestApplier(sm member.StateMachine, meta member.Meta, skip protocol.Position, load member.Loader) *Applier {
	if len(meta.Cursor.Points) == 0 {
		meta.Cursor = order.Begin(1, false)
	}
	return NewApplier(sm, meta, membertest.Session, skip, load)
}

func TestApplierAppliesOnceAndAnswers(t *testing.T) {
	sm := &membertest.History{}
	a := newTestApplier(sm, member.Meta{}, 0, nil)
	var results []any
	b := intake.NewBatch(0, 0, 0)
	for _, c := range []string{"a", "b"} {
		b.Add([]byte(c), func(r any, err error) { require.NoError(t, err); results = append(results, r) })
	}
	b.Seal(membertest.Session, 1, 1)
	again := membertest.Sealed(1, "a", "b")
	lost := intake.NewBatch(0, 0, 0)
	lost.Add([]byte("a"), func(_ any, err error) {
		require.ErrorIs(t, err, member.ErrResultUnknown)
		results = append(results, "lost")
	})
	lost.Seal(membertest.Session, 1, 1)

	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 1, Own: []*intake.Batch{b}, Entries: []protocol.Entry{
		{Index: 1, Term: 1, Kind: protocol.EntryNoop}, membertest.EntryOf(2, b), membertest.EntryOf(3, again),
	}}))
	require.Equal(t, []string{"2:a", "3:b"}, sm.Lines)
	require.Equal(t, []any{1, 2}, results)
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 1, Own: []*intake.Batch{lost},
		Entries: []protocol.Entry{membertest.EntryOf(4, lost)}}))
	require.Equal(t, []any{1, 2, "lost"}, results, "its result went to an earlier appearance")
	require.EqualValues(t, 6, a.Cursor().Position, "duplicates keep their positions")
	require.NoError(t, a.Check())
}

func TestApplierSkipsWhatADiskAlreadyHolds(t *testing.T) {
	sm := &membertest.History{}
	a := newTestApplier(sm, member.Meta{}, 2, nil)
	a.session = membertest.LaterSession
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 1,
		Entries: []protocol.Entry{membertest.EntryOf(1, membertest.Sealed(1, "a", "b", "c")),
			membertest.EntryOf(2, membertest.Sealed(1, "a", "b", "c"))}}))
	require.Equal(t, []string{"3:c"}, sm.Lines, "half an entry was applied before the crash; the duplicate is known")
}

func TestApplierLoadsWhatIsNotResident(t *testing.T) {
	sm := &membertest.History{}
	whole := membertest.Sealed(1, "far away")
	a := newTestApplier(sm, member.Meta{}, 0, func(_ protocol.InstanceID, e *protocol.Entry) error {
		e.Payload = whole.Entry.Payload
		return nil
	})
	e := membertest.EntryOf(1, whole)
	e.Payload = nil
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 1, Entries: []protocol.Entry{e}}))
	require.Equal(t, []string{"1:far away"}, sm.Lines)
}

func TestApplierStopsWhenTheStateMachineFails(t *testing.T) {
	sm := &membertest.History{Err: errors.New("disk full")}
	a := newTestApplier(sm, member.Meta{}, 0, nil)
	require.ErrorContains(t,
		a.Apply(intake.CommittedEntries{Instance: 1,
			Entries: []protocol.Entry{membertest.EntryOf(1, membertest.Sealed(1, "a"))}}), "disk full")
}

func TestApplierSnapshotCarriesSessions(t *testing.T) {
	sm := &membertest.History{}
	a := newTestApplier(sm, member.Meta{}, 0, nil)
	first := membertest.Sealed(1, "a")
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 1,
		Entries: []protocol.Entry{membertest.EntryOf(1, first)}}))
	meta := a.Meta()

	other := &membertest.History{}
	b := newTestApplier(other, member.Meta{}, 0, nil)
	failed := 0
	waiting := intake.NewBatch(0, 0, 0)
	waiting.Add([]byte("z"), func(_ any, err error) { require.ErrorIs(t, err, member.ErrResultUnknown); failed++ })
	waiting.Seal(membertest.Session, 9, 9)
	b.Instances[0].own = []ownBatch{{1, waiting}}
	require.NoError(t, b.Install(meta, strings.NewReader("1:a")))
	require.Equal(t, 1, failed)
	require.NoError(t, b.Apply(intake.CommittedEntries{Instance: 1,
		Entries: []protocol.Entry{membertest.EntryOf(2, first), membertest.EntryOf(3, membertest.Sealed(2, "b"))}}))
	require.Equal(t, []string{"1:a", "3:b"}, other.Lines)
}

func TestApplierTrustsASnapshotThatIsAheadOfItsLog(t *testing.T) {
	// The sender's state on disk held command 2 while its log was replayed only up to 1.
	ahead := newTestApplier(&membertest.History{}, member.Meta{}, 2, nil)
	ahead.session = membertest.LaterSession
	require.NoError(t, ahead.Apply(intake.CommittedEntries{Instance: 1,
		Entries: []protocol.Entry{membertest.EntryOf(1, membertest.Sealed(1, "a"))}}))
	meta := ahead.Meta()
	require.EqualValues(t, 1, meta.Cursor.Position)
	require.EqualValues(t, 2, meta.Command)

	sm := &membertest.History{}
	b := newTestApplier(sm, member.Meta{}, 0, nil)
	require.NoError(t, b.Install(meta, strings.NewReader("1:a 2:b")))
	require.NoError(t, b.Apply(intake.CommittedEntries{Instance: 1,
		Entries: []protocol.Entry{membertest.EntryOf(2, membertest.Sealed(2, "b")),
			membertest.EntryOf(3, membertest.Sealed(3, "c"))}}))
	require.Equal(t, []string{"1:a", "2:b", "3:c"}, sm.Lines)
}

// TestACommandOfThisLifeIsNotInAStateOfBefore: it stands where the state is already, so the state is of another log.
// It is not said to have taken effect.
func TestACommandOfThisLifeIsNotInAStateOfBefore(t *testing.T) {
	sm := &membertest.History{}
	a := newTestApplier(sm, member.Meta{}, 5, nil)
	var told error
	b := intake.NewBatch(0, 0, 0)
	b.Add([]byte("a"), func(_ any, err error) { told = err })
	b.Seal(membertest.Session, 1, 1)
	err := a.Apply(intake.CommittedEntries{Instance: 1, Own: []*intake.Batch{b},
		Entries: []protocol.Entry{membertest.EntryOf(1, b)}})
	require.Equal(t, &StateAheadError{State: 5, Log: 0}, err)
	require.ErrorIs(t, told, member.ErrMaybeCommitted)
	require.NotErrorIs(t, told, member.ErrResultUnknown)
}

// TestNobodyReadsAStateOfAnotherLog: a read index is applied, and the state that was found at the start is further.
func TestNobodyReadsAStateOfAnotherLog(t *testing.T) {
	a := newTestApplier(&membertest.History{}, member.Meta{}, 5, nil)
	a.session = membertest.LaterSession
	at := NewApplied(a)
	g := &intake.ReadGroup{Done: func(error) { t.Fatal("it is answered") }}
	require.True(t, at.Ask(g, 0, at.Shape(), 0))
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 1,
		Entries: []protocol.Entry{membertest.EntryOf(1, membertest.Sealed(1, "a"))}}))
	_, ready, look := at.AddReadIndex(g, 1, 1)
	require.False(t, ready)
	require.True(t, look)
	require.True(t, at.Doubtful())
	_, _, _, err := at.Note(a)
	require.Equal(t, &StateAheadError{State: 5, Log: 1}, err)
}

// TestSkippedCommandsOfAnOwnBatch: commands that a state has already are not applied again. The
// results of the commands after them are not taken for theirs.
func TestSkippedCommandsOfAnOwnBatch(t *testing.T) {
	for _, commands := range []int{3, 2 * applyBytes / callOverhead} {
		for skip := range 4 {
			sm := &membertest.History{}
			a := newTestApplier(sm, member.Meta{}, protocol.Position(skip), nil)
			a.brought = 0 // the state came with a snapshot
			b := intake.NewBatch(0, 0, 0)
			answers := make([]string, commands)
			freed := 0
			b.Free = func(*intake.Batch) { freed++ }
			for i := range commands {
				b.Add([]byte(fmt.Sprint(i)), func(result any, err error) { answers[i] += fmt.Sprint(result, err) })
			}
			b.Seal(membertest.Session, 1, 1)
			require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 1, Own: []*intake.Batch{b},
				Entries: []protocol.Entry{membertest.EntryOf(1, b)}}))
			require.Equal(t, 1, freed, "settled once")
			for i, answer := range answers {
				want := fmt.Sprint(nil, member.ErrResultUnknown)
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
	sm := &membertest.History{}
	a := newTestApplier(sm, member.Meta{}, 0, nil)
	var found []protocol.Index
	a.Malformed = func(_ protocol.InstanceID, index protocol.Index, err error) {
		require.Error(t, err)
		found = append(found, index)
	}
	bad := intake.NewBatch(0, 0, 0)
	bad.Add([]byte("a"), func(_ any, err error) { require.NoError(t, err) })
	bad.Entry.Payload = append(bad.Entry.Payload, 7, 'x') // says that seven bytes follow, and one does
	bad.Entry.Count = 2
	bad.Seal(membertest.Session, 1, 1)
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 1, Own: []*intake.Batch{bad}, Entries: []protocol.Entry{
		membertest.EntryOf(1, bad), {Index: 2, Term: 1, Kind: protocol.EntryReshape, Low: 3},
		membertest.EntryOf(3, membertest.Sealed(3, "b")),
	}}))
	require.Equal(t, []protocol.Index{1}, found)
	require.Equal(t, []string{"1:a", "4:b"}, sm.Lines, "what can be read of it is applied, on all members alike")
	require.NoError(t, a.Check())
}
