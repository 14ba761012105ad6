package member

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// TestAChangeThatIsNotAppliedYetIsPending: member 3 joins, but the state machine of the leader is
// not that far. So what is applied says that the removal of member 3 is in force already.
func TestAChangeThatIsNotAppliedYetIsPending(t *testing.T) {
	applied := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}}}
	newest := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3, Learner: true, Joining: true}}}
	leader := &protocol.Status{Self: 1, Role: protocol.Leader, Leader: 1, Config: newest}
	v := &MemberView{Now: time.Second, Instances: []*protocol.Status{leader}, Applied: &Applied{configs: []protocol.Config{applied}}}
	x := Executions{Config: OperationConfig{Self: 1, Heartbeat: time.Millisecond, Election: time.Second, GiveUp: time.Minute}}
	e := x.Begin(Operation{Kind: ChangeMembers, Changes: []protocol.Change{{Kind: protocol.RemoveMember, Member: protocol.Member{ID: 3}}}})

	step := e.Next(v)
	require.True(t, step.Done)
	var refused *RefusedError
	require.ErrorAs(t, step.Err, &refused)
	require.Equal(t, protocol.ReasonChangePending, refused.Reason)
	x.End(e, v)

	leader.Config = applied
	e = x.Begin(e.Op)
	require.True(t, e.Next(v).Confirm, "nothing to do, if this member still leads")
	e.Confirmed(nil)
	require.Equal(t, ExecutionStep{Done: true}, e.Next(v))
}
