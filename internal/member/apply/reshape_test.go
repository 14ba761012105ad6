package apply

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/protocol"
)

func TestWhatARetiredInstanceBringsLaterIsProposedAgain(t *testing.T) {
	sm := &membertest.History{}
	var got []string
	var again []*intake.Batch
	a := NewApplier(sm, membertest.WovenMeta(2), membertest.Session, 0, nil)
	a.Again = func(b *intake.Batch) { again = append(again, b) }
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 1,
		Entries: []protocol.Entry{membertest.ReshapeAt(1, 1)}}))
	inTime, early, late := membertest.OneCommand(1, "in time", &got), membertest.OneCommand(2, "early", &got),
		membertest.OneCommand(3, "late", &got)
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 2, Own: []*intake.Batch{inTime, early},
		Entries: []protocol.Entry{membertest.EntryOf(1, inTime), membertest.EntryOf(2, early)}}))
	require.Equal(t, []string{"1:in time"}, sm.Lines, "the round in which it was reshaped is the last one")
	require.Equal(t, []*intake.Batch{early}, again)
	require.Zero(t, a.Resident(), "what is dropped is not in memory")
	require.Len(t, a.Configs(), 1)
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 2, Own: []*intake.Batch{late},
		Entries: []protocol.Entry{membertest.EntryOf(3, late)}}))
	require.Equal(t, []*intake.Batch{early, late}, again)
	require.NoError(t, a.Check())
}

// TestWhatASnapshotRetiredTakesEffectOnce: a snapshot stands for the entries of a retired instance.
// One batch was among them and the others were not. All are proposed again, and the answers say
// which was.
func TestWhatASnapshotRetiredTakesEffectOnce(t *testing.T) {
	var got []string
	in, waits, late := membertest.OneCommand(1, "in", &got), membertest.OneCommand(2, "waits", &got),
		membertest.OneCommand(3, "late", &got)
	whole := NewApplier(&membertest.History{}, membertest.WovenMeta(2), membertest.Session, 0, nil)
	require.NoError(t, whole.Apply(intake.CommittedEntries{Instance: 1,
		Entries: []protocol.Entry{membertest.ReshapeAt(1, 1)}}))
	require.NoError(t, whole.Apply(intake.CommittedEntries{Instance: 2,
		Entries: []protocol.Entry{membertest.EntryOf(1, in)}}))
	require.Len(t, whole.Instances, 1)

	sm := &membertest.History{}
	var again []*intake.Batch
	a := NewApplier(sm, membertest.WovenMeta(2), membertest.Session, 0, nil)
	a.Again = func(b *intake.Batch) { again = append(again, b) }
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 2, Own: []*intake.Batch{in, waits},
		Entries: []protocol.Entry{membertest.EntryOf(1, in), membertest.EntryOf(2, waits)}}))
	require.NoError(t, a.Install(whole.Meta(), strings.NewReader("")))
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 2, Own: []*intake.Batch{late},
		Entries: []protocol.Entry{membertest.EntryOf(3, late)}}))
	require.Equal(t, []*intake.Batch{in, waits, late}, again)
	require.Empty(t, got)
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 1, Own: again,
		Entries: []protocol.Entry{membertest.EntryOf(2, in), membertest.EntryOf(3, waits), membertest.EntryOf(4, late)}}))
	require.Equal(t, []string{"in unknown", "waits", "late"}, got)
	require.Equal(t, []string{"4:waits", "5:late"}, sm.Lines)
}
