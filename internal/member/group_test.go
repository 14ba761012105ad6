package member

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// inGroup says that a group has a batch, as Instance does.
func inGroup(index protocol.Index, b *Batch) *Batch {
	b.group = index
	return b
}

// TestAGroupIsManyBatches: of several members in one entry, each at most once, whether it comes in groups
// or by itself. Repetitions keep their positions.
func TestAGroupIsManyBatches(t *testing.T) {
	var got []string
	one, two, three := told(1, "one", &got), told(2, "two", &got), told(3, "three", &got)
	other, third := ofMember(2, 1, "x", "y"), ofMember(3, 8, "z")
	sm := &history{}
	a := newTestApplier(sm, Meta{}, 0, nil)
	own := []*Batch{inGroup(1, one), two, inGroup(3, three)}
	require.NoError(t, a.Apply(CommittedEntries{Instance: 1, Own: own, Entries: []protocol.Entry{
		groupAt(1, other, one), entryOf(2, two), groupAt(3, third, other, one, three), groupAt(4), entryOf(5, third),
		groupAt(6, ofMember(2, 3, "last")),
	}}))
	require.Equal(t, []string{"1:x", "2:y", "3:one", "4:two", "5:z", "9:three", "12:last"}, sm.lines)
	require.Equal(t, []string{"one", "two", "three"}, got)
	require.EqualValues(t, 12, a.Cursor().Position, "an empty group has one too")
	require.Zero(t, a.Waiting(1))
	require.Zero(t, a.Resident())
	require.NoError(t, a.Check())

	ahead := &history{}
	b := newTestApplier(ahead, Meta{}, 2, nil)
	feed(t, b, 1, groupAt(1, ofMember(2, 1, "x"), ofMember(3, 1, "y", "z")))
	require.Equal(t, []string{"3:z"}, ahead.lines, "a part of a group was applied before the crash")
}

// TestAGroupThatIsNone is passed over as a whole, and whoever waits for a part of it is told.
func TestAGroupThatIsNone(t *testing.T) {
	var got []string
	one, two := told(1, "one", &got), told(2, "two", &got)
	e := groupAt(1, ofMember(2, 1, "x"), one)
	e.Count++
	sm, wrong := &history{}, 0
	a := newTestApplier(sm, Meta{}, 0, nil)
	a.Malformed = func(protocol.InstanceID, protocol.Index, error) { wrong++ }
	require.NoError(t, a.Apply(CommittedEntries{Instance: 1, Own: []*Batch{inGroup(1, one), two}, Entries: []protocol.Entry{e, entryOf(2, two)}}))
	require.Equal(t, []string{"4:two"}, sm.lines, "its positions are those that its envelope says")
	require.Len(t, got, 2)
	require.Contains(t, got[0], protocol.ReasonMalformed.String())
	require.Equal(t, 1, wrong)
	require.NoError(t, a.Check())
}
