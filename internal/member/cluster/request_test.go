package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// TestAnotherChangeTakesThePlaceOfOne: before the leader's answer comes, the change is in effect at the member that was
// asked, and another change takes its place.
func TestAnotherChangeTakesThePlaceOfOne(t *testing.T) {
	named := func(name string) []protocol.Config {
		return []protocol.Config{{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3, Name: name}}}}
	}
	applied := appliedAt(0, named("old")...)
	follower := &protocol.Status{Self: 1, Leader: 2, Config: named("old")[0]}
	v := &MemberView{Now: time.Second, Instances: []*protocol.Status{follower}, Applied: applied}
	op := Operation{Kind: ChangeMembers,
		Changes: []protocol.Change{{Kind: protocol.UpdateMember, Member: protocol.Member{ID: 3, Name: "new"}}}}
	q := NewRequest(member.OperationConfig{Self: 1, Heartbeat: time.Millisecond, Election: time.Second,
		GiveUp: time.Minute}, op, v)

	ask, done, err := q.Next(v)
	require.NoError(t, err)
	require.False(t, done)
	require.EqualValues(t, 2, ask)
	applied.NoteConfigs(applierAt(0, 0, named("new")...))
	applied.NoteConfigs(applierAt(0, 0, named("another")...))
	q.Answered(v, nil)
	_, done, err = q.Next(v)
	require.NoError(t, err)
	require.True(t, done)
}

// TestWhatALeaderWasAskedWasSent: a leader that proposed a change of the number of instances and then lost its place
// refuses, and the change may still take effect. So no one says that nothing was sent, if the operator waits no longer
// then.
func TestWhatALeaderWasAskedWasSent(t *testing.T) {
	config := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}}}
	st := &protocol.Status{Self: 1, Config: config}
	v := &MemberView{Now: time.Second, Instances: []*protocol.Status{st}, Applied: appliedAt(0, config)}
	cfg := member.OperationConfig{Self: 1, Heartbeat: time.Millisecond, Election: time.Second, GiveUp: time.Minute}
	q := NewRequest(cfg, Operation{Kind: Reshape, Instances: 2}, v)
	ask, _, _ := q.Next(v)
	require.Zero(t, ask)
	require.ErrorIs(t, q.Unanswered(context.Canceled), member.ErrNotSent, "there was no leader")

	v.Now += time.Second
	st.Leader = 2
	ask, _, _ = q.Next(v)
	require.EqualValues(t, 2, ask)
	q.Answered(v, q.Op.refuse(protocol.ReasonNotLeader, 0))
	err := q.Unanswered(context.Canceled)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, member.ErrNotSent)
}
