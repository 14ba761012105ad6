package member

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

func TestApplierWeavesInstances(t *testing.T) {
	sm := &history{}
	var got []string
	a := NewApplier(sm, wovenMeta(2), life, 0, nil)
	first, second := told(1, "a", &got), told(2, "b", &got)
	require.NoError(t, a.Apply(CommittedEntries{Instance: 2, Entries: []protocol.Entry{entryOf(1, second)}, Own: []*Batch{second}}))
	require.Empty(t, sm.lines, "the first instance has the first slot")
	require.Equal(t, len(second.Entry.Payload), a.Resident())
	require.NoError(t, a.Apply(CommittedEntries{Instance: 1, Entries: []protocol.Entry{entryOf(1, first)}, Own: []*Batch{first}}))
	require.Equal(t, []string{"1:a", "2:b"}, sm.lines)
	require.Equal(t, []string{"a", "b"}, got)
	require.Zero(t, a.Resident())
	require.NoError(t, a.Check())
}

// snapshotAt is the meta of a woven log of two instances after so many rounds of batches.
func snapshotAt(t *testing.T, rounds int) Meta {
	a := NewApplier(&history{}, wovenMeta(2), life, 0, nil)
	for i := range rounds {
		for id := range protocol.InstanceID(2) {
			b := NewBatch(0, 0, 0)
			b.Add([]byte("x"), nil)
			b.Seal(protocol.Session{Member: 9, Incarnation: 1}, uint64(i+1), uint64(i+1))
			require.NoError(t, a.Apply(CommittedEntries{Instance: id + 1, Entries: []protocol.Entry{entryOf(protocol.Index(i+1), b)}}))
		}
	}
	return a.Meta()
}

func TestASnapshotOfOneInstanceSettlesWhatItCoversOfOthers(t *testing.T) {
	meta := snapshotAt(t, 3)
	sm := &history{}
	var got []string
	a := NewApplier(sm, wovenMeta(2), life, 0, nil)
	covered, after := told(1, "covered", &got), told(4, "after", &got)
	late, last := told(3, "late", &got), told(2, "last", &got)
	// Instance 2 is ahead of the snapshot, which instance 1 needs.
	require.NoError(t, a.Apply(CommittedEntries{Instance: 2, Own: []*Batch{covered, after}, Entries: []protocol.Entry{
		skipAt(1, 1), skipAt(2, 2), entryOf(3, covered), entryOf(4, after),
	}}))
	require.NoError(t, a.Install(meta, strings.NewReader("")))
	require.Equal(t, []string{"covered unknown"}, got, "what is after the snapshot is still to come")
	// Instance 1's core does not know of the snapshot, and commits entries for which it stands.
	require.NoError(t, a.Apply(CommittedEntries{Instance: 1, Own: []*Batch{late, last}, Entries: []protocol.Entry{
		skipAt(1, 1), entryOf(2, late), skipAt(3, 3), entryOf(4, last),
	}}))
	require.Equal(t, []string{"covered unknown", "late unknown", "last", "after"}, got)
	require.Equal(t, []string{"7:last", "8:after"}, sm.lines)
	require.NoError(t, a.Check())
}

func TestNothingIsAppliedOverAHole(t *testing.T) {
	meta := snapshotAt(t, 2)
	sm := &history{}
	gone := errors.New("the log was cut")
	a := NewApplier(sm, wovenMeta(2), life, 0, func(protocol.InstanceID, *protocol.Entry) error { return gone })
	hole := entryOf(1, sealed(1, "hole"))
	hole.Payload = nil
	require.ErrorIs(t, a.Apply(CommittedEntries{Instance: 1, Entries: []protocol.Entry{hole}}), gone)
	require.True(t, a.Stuck())
	require.NoError(t, a.Apply(CommittedEntries{Instance: 2, Entries: []protocol.Entry{entryOf(1, sealed(1, "x")), skipAt(2, 2), entryOf(3, sealed(3, "y"))}}))
	require.Empty(t, sm.lines, "what comes after the hole waits")
	require.NoError(t, a.Install(meta, strings.NewReader("")))
	require.False(t, a.Stuck())
	require.NoError(t, a.Apply(CommittedEntries{Instance: 1, Entries: []protocol.Entry{entryOf(3, sealed(2, "z"))}}))
	require.Equal(t, []string{"5:z", "6:y"}, sm.lines)
	require.NoError(t, a.Check())
}

// TestWhatAnInstanceCommitsWhileTheStateIsDamaged: nothing is applied, so the state does not come to where the
// instance begins. What it commits is applied once there is another state.
func TestWhatAnInstanceCommitsWhileTheStateIsDamaged(t *testing.T) {
	sm := &repairable{}
	a := NewApplier(sm, wovenMeta(2), life, 0, nil)
	before := a.Meta()
	sm.damage = errors.New("a key is damaged")
	a.Halt()
	var got []string
	own := told(5, "own", &got)
	require.NoError(t, a.Apply(CommittedEntries{Instance: 1, Entries: []protocol.Entry{reshapeAt(1, 3), entryOf(2, sealed(1, "a"))}}))
	require.NoError(t, a.Apply(CommittedEntries{Instance: 2, Entries: []protocol.Entry{skipAt(1, 9)}}))
	require.NoError(t, a.Apply(CommittedEntries{Instance: 3, Own: []*Batch{own}, Entries: []protocol.Entry{entryOf(1, own)}}))
	require.NoError(t, a.Check())
	require.Empty(t, sm.lines)
	require.Equal(t, len(own.Entry.Payload)+len(sealed(1, "a").Entry.Payload), a.Resident())

	require.NoError(t, a.Install(before, strings.NewReader("")))
	require.NoError(t, a.Check())
	require.Equal(t, []string{"2:a", "3:own"}, sm.lines)
	require.Equal(t, []string{"own"}, got)
	require.Zero(t, a.Resident())
}
