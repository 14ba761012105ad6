package apply

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/protocol"
)

func TestApplierWeavesInstances(t *testing.T) {
	sm := &membertest.History{}
	var got []string
	a := NewApplier(sm, membertest.WovenMeta(2), membertest.Session, 0, nil)
	first, second := membertest.OneCommand(1, "a", &got), membertest.OneCommand(2, "b", &got)
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 2,
		Entries: []protocol.Entry{membertest.EntryOf(1, second)}, Own: []*intake.Batch{second}}))
	require.Empty(t, sm.Lines, "the first instance has the first slot")
	require.Equal(t, len(second.Entry.Payload), a.Resident())
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 1,
		Entries: []protocol.Entry{membertest.EntryOf(1, first)}, Own: []*intake.Batch{first}}))
	require.Equal(t, []string{"1:a", "2:b"}, sm.Lines)
	require.Equal(t, []string{"a", "b"}, got)
	require.Zero(t, a.Resident())
	require.NoError(t, a.Check())
}

// snapshotAt is the meta of a merged log of two instances after so many rounds of batches.
func snapshotAt(t *testing.T, rounds int) member.Meta {
	a := NewApplier(&membertest.History{}, membertest.WovenMeta(2), membertest.Session, 0, nil)
	for i := range rounds {
		for id := range protocol.InstanceID(2) {
			b := intake.NewBatch(0, 0, 0)
			b.Add([]byte("x"), nil)
			b.Seal(protocol.Session{Member: 9, Incarnation: 1}, uint64(i+1), uint64(i+1))
			require.NoError(t, a.Apply(intake.CommittedEntries{Instance: id + 1,
				Entries: []protocol.Entry{membertest.EntryOf(protocol.Index(i+1), b)}}))
		}
	}
	return a.Meta()
}

func TestASnapshotOfOneInstanceSettlesWhatItCoversOfOthers(t *testing.T) {
	meta := snapshotAt(t, 3)
	sm := &membertest.History{}
	var got []string
	a := NewApplier(sm, membertest.WovenMeta(2), membertest.Session, 0, nil)
	covered, after := membertest.OneCommand(1, "covered", &got), membertest.OneCommand(4, "after", &got)
	late, last := membertest.OneCommand(3, "late", &got), membertest.OneCommand(2, "last", &got)
	// Instance 2 is ahead of the snapshot, which instance 1 needs.
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 2, Own: []*intake.Batch{covered, after},
		Entries: []protocol.Entry{
			membertest.SkipAt(1, 1), membertest.SkipAt(2, 2), membertest.EntryOf(3, covered), membertest.EntryOf(4, after),
		}}))
	require.NoError(t, a.Install(meta, strings.NewReader("")))
	require.Equal(t, []string{"covered unknown"}, got, "what is after the snapshot is still to come")
	// Instance 1's core does not know of the snapshot, and commits entries for which it stands.
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 1, Own: []*intake.Batch{late, last},
		Entries: []protocol.Entry{
			membertest.SkipAt(1, 1), membertest.EntryOf(2, late), membertest.SkipAt(3, 3), membertest.EntryOf(4, last),
		}}))
	require.Equal(t, []string{"covered unknown", "late unknown", "last", "after"}, got)
	require.Equal(t, []string{"7:last", "8:after"}, sm.Lines)
	require.NoError(t, a.Check())
}

func TestNothingIsAppliedOverAHole(t *testing.T) {
	meta := snapshotAt(t, 2)
	sm := &membertest.History{}
	gone := errors.New("the log was cut")
	a := NewApplier(sm, membertest.WovenMeta(2), membertest.Session, 0,
		func(protocol.InstanceID, *protocol.Entry) error { return gone })
	hole := membertest.EntryOf(1, membertest.Sealed(1, "hole"))
	hole.Payload = nil
	require.ErrorIs(t, a.Apply(intake.CommittedEntries{Instance: 1, Entries: []protocol.Entry{hole}}), gone)
	require.True(t, a.Stuck())
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 2,
		Entries: []protocol.Entry{membertest.EntryOf(1, membertest.Sealed(1, "x")), membertest.SkipAt(2, 2),
			membertest.EntryOf(3, membertest.Sealed(3, "y"))}}))
	require.Empty(t, sm.Lines, "what comes after the hole waits")
	require.NoError(t, a.Install(meta, strings.NewReader("")))
	require.False(t, a.Stuck())
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 1,
		Entries: []protocol.Entry{membertest.EntryOf(3, membertest.Sealed(2, "z"))}}))
	require.Equal(t, []string{"5:z", "6:y"}, sm.Lines)
	require.NoError(t, a.Check())
}

// TestWhatAnInstanceCommitsWhileTheStateIsDamaged: nothing is applied, so the state does not come to where the
// instance begins. What it commits is applied once there is another state.
func TestWhatAnInstanceCommitsWhileTheStateIsDamaged(t *testing.T) {
	sm := &repairable{}
	a := NewApplier(sm, membertest.WovenMeta(2), membertest.Session, 0, nil)
	before := a.Meta()
	sm.damage = errors.New("a key is damaged")
	a.Halt()
	var got []string
	own := membertest.OneCommand(5, "own", &got)
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 1,
		Entries: []protocol.Entry{membertest.ReshapeAt(1, 3), membertest.EntryOf(2, membertest.Sealed(1, "a"))}}))
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 2, Entries: []protocol.Entry{membertest.SkipAt(1, 9)}}))
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 3, Own: []*intake.Batch{own},
		Entries: []protocol.Entry{membertest.EntryOf(1, own)}}))
	require.NoError(t, a.Check())
	require.Empty(t, sm.Lines)
	require.Equal(t, len(own.Entry.Payload)+len(membertest.Sealed(1, "a").Entry.Payload), a.Resident())

	require.NoError(t, a.Install(before, strings.NewReader("")))
	require.NoError(t, a.Check())
	require.Equal(t, []string{"2:a", "3:own"}, sm.Lines)
	require.Equal(t, []string{"own"}, got)
	require.Zero(t, a.Resident())
}
