package apply

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// keyedMember is an applier of two groups, with a state machine each.
type keyedMember struct {
	*Applier
	groups [2]*membertest.History
}

func newKeyedMember(t *testing.T) *keyedMember {
	m := &keyedMember{}
	at := order.BeginKeyed(2)
	sm, err := NewGroups(at.Instances(), func(id protocol.InstanceID) member.StateMachine {
		m.groups[id-1] = &membertest.History{}
		return m.groups[id-1]
	})
	require.NoError(t, err)
	require.NoError(t, CheckMachine(sm, &at))
	m.Applier = NewApplier(sm, member.Bootstrap(at, nil), own(1, 1), 0, nil)
	return m
}

// own is a session of groups, whose numbers are each group's own.
func own(member protocol.MemberID, seq uint64) protocol.Session {
	return protocol.NewSession(member, protocol.LogID{}, seq, false)
}

func (m *keyedMember) commits(t *testing.T, group protocol.InstanceID, batches ...*intake.Batch) {
	var entries []protocol.Entry
	for _, b := range batches {
		entries = append(entries, membertest.EntryOf(m.Added(group)+1+protocol.Index(len(entries)), b))
	}
	require.NoError(t, m.Apply(intake.CommittedEntries{Instance: group, Entries: entries}))
	require.NoError(t, m.Check())
}

func (m *keyedMember) state(t *testing.T) (member.Meta, string) {
	v, err := m.Machine().Snapshot()
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, v.WriteTo(context.Background(), &b))
	require.NoError(t, v.Close())
	return m.Meta(), b.String()
}

func ofSession(from protocol.MemberID, seq uint64, command string) *intake.Batch {
	b := intake.NewBatch(0, 0, 0)
	b.Add([]byte(command), func(any, error) {})
	b.Seal(own(from, 1), seq, 1)
	return b
}

func TestEachGroupHasItsOwnMachineAndSessions(t *testing.T) {
	m := newKeyedMember(t)
	m.commits(t, 1, ofSession(7, 1, "a"), ofSession(7, 1, "a"))
	m.commits(t, 2, ofSession(7, 1, "b"))
	m.commits(t, 1, ofSession(7, 2, "c"))
	require.Equal(t, []string{"1:a", "3:c"}, m.groups[0].Lines, "once, at positions of the group")
	require.Equal(t, []string{"1:b"}, m.groups[1].Lines, "the same number is another command in another group")
}

// Of a snapshot a member takes over what it does not have, group by group, and continues from there.
func TestASnapshotIsMergedGroupByGroup(t *testing.T) {
	here, there := newKeyedMember(t), newKeyedMember(t)
	a, b, c, d := ofSession(7, 1, "a"), ofSession(7, 2, "b"), ofSession(8, 1, "c"),
		ofSession(8, 2, strings.Repeat("d", 3<<20))
	here.commits(t, 1, a, b)
	there.commits(t, 1, a)
	there.commits(t, 2, c, d)
	meta, state := there.state(t)
	require.NoError(t, here.Merge(&meta, strings.NewReader(state)))
	require.NoError(t, here.Check())
	require.Equal(t, []string{"1:a", "2:b"}, here.groups[0].Lines, "here it is further")
	require.Len(t, here.groups[1].Lines, 2)
	here.commits(t, 2, d, ofSession(8, 3, "e"))
	require.Equal(t, "4:e", here.groups[1].Lines[2], "what took effect there is known")
	there.commits(t, 1, b)
	require.Equal(t, here.Cursor().Points[0], there.Cursor().Points[0])

	again := newKeyedMember(t)
	meta, state = here.state(t)
	require.NoError(t, again.Machine().Restore(strings.NewReader(state)), "a start restores all groups")
	require.Equal(t, here.groups[0].Lines, again.groups[0].Lines)
	require.Equal(t, here.groups[1].Lines, again.groups[1].Lines)
	require.Error(t, again.Machine().Restore(strings.NewReader(state[:len(state)-1])))
	require.Equal(t, meta.Cursor, here.Cursor())
}

// The cores give up their logs for what was merged. So they learn of it when a snapshot that has it is durable, and not
// of one that was begun before.
func TestWhatIsMergedIsOfferedWhenItIsDurable(t *testing.T) {
	there, here := newKeyedMember(t), newKeyedMember(t)
	there.commits(t, 2, ofSession(8, 1, "c"))
	meta, state := there.state(t)
	world := &notes{}
	at := here.Cursor()
	p := NewApply(here.Applier, at, 1<<20, world)
	require.NoError(t, p.Do(&ApplyItem{Merge: true}))
	require.Error(t, world.failed, "there is nothing to merge")

	require.NoError(t, p.Do(&ApplyItem{Due: true})) // a snapshot from before
	world.staged = &received{strings.NewReader(state), meta}
	require.NoError(t, p.Do(&ApplyItem{Merge: true}))
	require.Equal(t, []string{"1:c"}, here.groups[1].Lines)
	require.NoError(t, p.Do(&ApplyItem{Wrote: &Written{Meta: world.saved[0]}}))
	require.Len(t, world.saved, 2)
	require.Empty(t, world.merged)
	require.NoError(t, p.Do(&ApplyItem{Wrote: &Written{Meta: world.saved[1], Err: errors.New("no room")}}))
	require.Empty(t, world.merged)
	require.Len(t, world.saved, 2, "it is not tried again at once")
	require.NoError(t, p.Do(&ApplyItem{Rewrite: true}))
	require.NoError(t, p.Do(&ApplyItem{Wrote: &Written{Meta: world.saved[2]}}))
	require.Len(t, world.merged, 1)
	require.Equal(t, here.Cursor(), world.merged[0].Cursor)
	require.NoError(t, p.Do(&ApplyItem{Rewrite: true}))
	require.Len(t, world.saved, 3, "it is done")

	base := meta.Base(2)
	require.NoError(t, p.Do(&ApplyItem{Install: &base, Commit: intake.CommittedEntries{Instance: 2}}))
	require.Equal(t, world.merged[0].Cursor, world.stand.Oldest, "a start can not go back to what is older")
}

func TestMachinesThatDoNotFitTheOrder(t *testing.T) {
	keyed, single := order.BeginKeyed(2), order.Begin(1, false)
	require.ErrorAs(t, CheckMachine(&membertest.History{}, &keyed), new(*intake.GroupError))
	require.NoError(t, CheckMachine(&membertest.History{}, &single))
	_, err := NewGroups(keyed.Instances(), func(protocol.InstanceID) member.StateMachine { return durableHistory{} })
	require.ErrorContains(t, err, "keeps its state on disk")
}

type durableHistory struct{ *membertest.History }

func (durableHistory) Applied() protocol.Position { return 0 }
func (durableHistory) Sync() error                { return nil }
