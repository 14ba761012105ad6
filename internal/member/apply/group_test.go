package apply

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/protocol"
)

// inGroup says that a group has a batch, as Instance does.
func inGroup(index protocol.Index, b *intake.Batch) *intake.Batch {
	b.Group = index
	return b
}

// TestAGroupIsManyBatches: of several members in one entry, each at most once, whether it comes in groups
// or by itself. Repetitions keep their positions.
func TestAGroupIsManyBatches(t *testing.T) {
	var got []string
	one, two, three := membertest.OneCommand(1, "one", &got), membertest.OneCommand(2, "two", &got),
		membertest.OneCommand(3, "three", &got)
	other, third := membertest.OfMember(2, 1, "x", "y"), membertest.OfMember(3, 8, "z")
	sm := &membertest.History{}
	a := newTestApplier(sm, member.Meta{}, 0, nil)
	own := []*intake.Batch{inGroup(1, one), two, inGroup(3, three)}
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 1, Own: own, Entries: []protocol.Entry{
		membertest.GroupAt(1, other, one), membertest.EntryOf(2, two), membertest.GroupAt(3, third, other, one, three),
		membertest.GroupAt(4), membertest.EntryOf(5, third),
		membertest.GroupAt(6, membertest.OfMember(2, 3, "last")),
	}}))
	require.Equal(t, []string{"1:x", "2:y", "3:one", "4:two", "5:z", "9:three", "12:last"}, sm.Lines)
	require.Equal(t, []string{"one", "two", "three"}, got)
	require.EqualValues(t, 12, a.Cursor().Position, "an empty group has one too")
	require.Zero(t, a.Waiting(1))
	require.Zero(t, a.Resident())
	require.NoError(t, a.Check())

	ahead := &membertest.History{}
	b := newTestApplier(ahead, member.Meta{}, 2, nil)
	feed(t, b, 1, membertest.GroupAt(1, membertest.OfMember(2, 1, "x"), membertest.OfMember(3, 1, "y", "z")))
	require.Equal(t, []string{"3:z"}, ahead.Lines, "a part of a group was applied before the crash")
}

// TestAGroupThatIsNone is passed over as a whole, and whoever waits for a part of it is told.
func TestAGroupThatIsNone(t *testing.T) {
	var got []string
	one, two := membertest.OneCommand(1, "one", &got), membertest.OneCommand(2, "two", &got)
	e := membertest.GroupAt(1, membertest.OfMember(2, 1, "x"), one)
	e.Count++
	sm, wrong := &membertest.History{}, 0
	a := newTestApplier(sm, member.Meta{}, 0, nil)
	a.Malformed = func(protocol.InstanceID, protocol.Index, error) { wrong++ }
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 1, Own: []*intake.Batch{inGroup(1, one), two},
		Entries: []protocol.Entry{e, membertest.EntryOf(2, two)}}))
	require.Equal(t, []string{"4:two"}, sm.Lines, "its positions are those that its envelope says")
	require.Len(t, got, 2)
	require.Contains(t, got[0], protocol.ReasonMalformed.String())
	require.Equal(t, 1, wrong)
	require.NoError(t, a.Check())
}
