package member

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

func TestWhatARetiredInstanceBringsLaterIsProposedAgain(t *testing.T) {
	sm := &history{}
	var got []string
	var again []*Batch
	a := NewApplier(sm, wovenMeta(2), life, 0, nil)
	a.Again = func(b *Batch) { again = append(again, b) }
	require.NoError(t, a.Apply(CommittedEntries{Instance: 1, Entries: []protocol.Entry{reshapeAt(1, 1)}}))
	inTime, early, late := told(1, "in time", &got), told(2, "early", &got), told(3, "late", &got)
	require.NoError(t, a.Apply(CommittedEntries{Instance: 2, Own: []*Batch{inTime, early}, Entries: []protocol.Entry{entryOf(1, inTime), entryOf(2, early)}}))
	require.Equal(t, []string{"1:in time"}, sm.lines, "the round in which it was reshaped is the last one")
	require.Equal(t, []*Batch{early}, again)
	require.Zero(t, a.Resident(), "what is dropped is not in memory")
	require.Len(t, a.Configs(), 1)
	require.NoError(t, a.Apply(CommittedEntries{Instance: 2, Own: []*Batch{late}, Entries: []protocol.Entry{entryOf(3, late)}}))
	require.Equal(t, []*Batch{early, late}, again)
	require.NoError(t, a.Check())
}

// TestWhatASnapshotRetiredTakesEffectOnce: a snapshot stands for the entries of a retired instance.
// One batch was among them and the others were not. All are proposed again, and the answers say
// which was.
func TestWhatASnapshotRetiredTakesEffectOnce(t *testing.T) {
	var got []string
	in, waits, late := told(1, "in", &got), told(2, "waits", &got), told(3, "late", &got)
	whole := NewApplier(&history{}, wovenMeta(2), life, 0, nil)
	require.NoError(t, whole.Apply(CommittedEntries{Instance: 1, Entries: []protocol.Entry{reshapeAt(1, 1)}}))
	require.NoError(t, whole.Apply(CommittedEntries{Instance: 2, Entries: []protocol.Entry{entryOf(1, in)}}))
	require.Len(t, whole.Instances, 1)

	sm := &history{}
	var again []*Batch
	a := NewApplier(sm, wovenMeta(2), life, 0, nil)
	a.Again = func(b *Batch) { again = append(again, b) }
	require.NoError(t, a.Apply(CommittedEntries{Instance: 2, Own: []*Batch{in, waits}, Entries: []protocol.Entry{entryOf(1, in), entryOf(2, waits)}}))
	require.NoError(t, a.Install(whole.Meta(), strings.NewReader("")))
	require.NoError(t, a.Apply(CommittedEntries{Instance: 2, Own: []*Batch{late}, Entries: []protocol.Entry{entryOf(3, late)}}))
	require.Equal(t, []*Batch{in, waits, late}, again)
	require.Empty(t, got)
	require.NoError(t, a.Apply(CommittedEntries{Instance: 1, Own: again, Entries: []protocol.Entry{entryOf(2, in), entryOf(3, waits), entryOf(4, late)}}))
	require.Equal(t, []string{"in unknown", "waits", "late"}, got)
	require.Equal(t, []string{"4:waits", "5:late"}, sm.lines)
}
