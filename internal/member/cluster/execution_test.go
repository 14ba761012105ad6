package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// appliedAt is what is known of a member that has applied these memberships, and the first instance as far as an index.
func appliedAt(index protocol.Index, configs ...protocol.Config) *apply.Applied {
	return apply.NewApplied(applierAt(index, 0, configs...))
}

// applierAt has so many instances as there are memberships. The log is to be reshaped if reshape is not 0.
func applierAt(index protocol.Index, reshape int, configs ...protocol.Config) *apply.Applier {
	at := order.Begin(len(configs), true)
	at.Points[0].Index, at.Reshape = index, reshape
	meta := member.Meta{Cursor: at, Config: configs[0], Others: configs[1:]}
	return apply.NewApplier(&membertest.History{}, meta, membertest.Session, 0, nil)
}

// TestAChangeThatIsNotAppliedYetIsPending: member 3 joins, but the state machine of the leader is not that far. So what
// is applied says that the removal of member 3 is in effect already.
func TestAChangeThatIsNotAppliedYetIsPending(t *testing.T) {
	applied := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}}}
	newest := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3, Learner: true, Joining: true}}}
	leader := &protocol.Status{Instance: 1, Self: 1, Role: protocol.Leader, Leader: 1, Config: newest}
	v := &MemberView{Now: time.Second, Instances: []*protocol.Status{leader}, Applied: appliedAt(0, applied)}
	x := Executions{Config: member.OperationConfig{Self: 1, Heartbeat: time.Millisecond, Election: time.Second,
		GiveUp: time.Minute}}
	e := x.Begin(Operation{Kind: ChangeMembers,
		Changes: []protocol.Change{{Kind: protocol.RemoveMember, Member: protocol.Member{ID: 3}}}})

	step := e.Next(v)
	require.True(t, step.Done)
	var refused *member.RefusedError
	require.ErrorAs(t, step.Err, &refused)
	require.Equal(t, protocol.ReasonChangePending, refused.Reason)
	x.End(e, v)

	leader.Config = applied
	leader.Config.Removed = []protocol.MemberID{3}
	e = x.Begin(e.Op)
	require.True(t, e.Next(v).Confirm, "nothing to do, if this member still leads")
	e.Confirmed(nil)
	require.Equal(t, ExecutionStep{Done: true}, e.Next(v))
	x.End(e, v)

	leader.Config.Removed = nil
	e = x.Begin(e.Op)
	require.True(t, e.Next(v).Confirm, "another leader may have added the member")
	e.Confirmed(nil)
	require.ErrorAs(t, e.Next(v).Err, &refused)
	require.Equal(t, protocol.ReasonUnknownMember, refused.Reason)
}

// TestAChangeIsNotMadeByWhatCameBefore: a voter took another one's place, then member 4 joined, and the leader
// has applied neither whole. The removal of member 4 is asked for. The end of the first change, which does not
// have member 4 yet, must not pass for it.
func TestAChangeIsNotMadeByWhatCameBefore(t *testing.T) {
	joint := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 3}}, Outgoing: []protocol.MemberID{1, 2}}
	final := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 3}}}
	joined := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 3}, {ID: 4, Learner: true, Joining: true}}}
	leader := &protocol.Status{Instance: 1, Self: 1, Role: protocol.Leader, Leader: 1, Config: joined, ConfigIndex: 9}
	applied := appliedAt(0, joint)
	v := &MemberView{Now: time.Second, Instances: []*protocol.Status{leader}, Applied: applied}
	x := Executions{Config: member.OperationConfig{Self: 1, Heartbeat: time.Millisecond, Election: time.Second,
		GiveUp: time.Minute}}
	e := x.Begin(Operation{Kind: ChangeMembers,
		Changes: []protocol.Change{{Kind: protocol.RemoveMember, Member: protocol.Member{ID: 4}}}})
	require.Len(t, e.Next(v).Tell, 1)

	for _, c := range []struct {
		config protocol.Config
		index  protocol.Index
		made   bool
	}{{final, 7, false}, {joined, 9, false}, {final, 10, true}} {
		applied.NoteConfigs(applierAt(c.index, 0, c.config))
		require.Equal(t, c.made, e.Next(v).Done, "at %d", c.index)
	}
}

// TestAChangeIsMadeBeforeTheEndOfTheLog: other leaders of ISS have proposed in slots that come after the leader's own
// next one, so the change takes effect before the end of the log as it was when the change was asked for.
func TestAChangeIsMadeBeforeTheEndOfTheLog(t *testing.T) {
	two, three := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}}},
		protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}}}
	leader := &protocol.Status{Instance: 1, Self: 1, Role: protocol.Leader, Leader: 1, Config: three, ConfigIndex: 4,
		Last: 90}
	applied := appliedAt(20, three)
	v := &MemberView{Now: time.Second, Instances: []*protocol.Status{leader}, Applied: applied}
	x := Executions{Config: member.OperationConfig{Self: 1, Election: time.Second, GiveUp: time.Minute}}
	e := x.Begin(Operation{Kind: ChangeMembers,
		Changes: []protocol.Change{{Kind: protocol.RemoveMember, Member: protocol.Member{ID: 3}}}})
	require.Len(t, e.Next(v).Tell, 1)
	applied.NoteConfigs(applierAt(40, 0, two))
	require.Equal(t, ExecutionStep{Done: true}, e.Next(v))
}

// TestAChangeThatASealPassesIsGivenUp: another member led meanwhile and sealed the log without the change. This member
// leads behind the seal, where the change will never be made. What takes effect there counts, also at a lower index.
func TestAChangeThatASealPassesIsGivenUp(t *testing.T) {
	two, three := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}}},
		protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}}}
	leader := &protocol.Status{Instance: 1, Self: 1, Role: protocol.Leader, Leader: 1, Config: three, ConfigIndex: 40}
	applied := appliedAt(40, three)
	v := &MemberView{Now: time.Second, Instances: []*protocol.Status{leader}, Applied: applied}
	x := Executions{Config: member.OperationConfig{Self: 1, Election: time.Second, GiveUp: time.Minute}}
	op := Operation{Kind: ChangeMembers,
		Changes: []protocol.Change{{Kind: protocol.RemoveMember, Member: protocol.Member{ID: 3}}}}
	dropped, made := x.Begin(op), x.Begin(op)
	require.Len(t, dropped.Next(v).Tell, 1)
	require.Len(t, made.Next(v).Tell, 1)

	behind := func(index protocol.Index, c protocol.Config) *apply.Applier {
		at := order.Cursor{Position: 50, Points: []order.Point{{Instance: 2, Index: index}}}
		return apply.NewApplier(&membertest.History{}, member.Meta{Cursor: at, Config: c}, membertest.Session, 0, nil)
	}
	leader.Instance, leader.ConfigIndex = 2, 1
	applied.NoteConfigs(behind(1, three))
	v.Now += time.Minute - 1
	require.Equal(t, ExecutionStep{}, dropped.Next(v))
	v.Now++
	require.ErrorAs(t, dropped.Next(v).Err, new(*member.StalledError))
	applied.NoteConfigs(behind(3, two))
	require.Equal(t, ExecutionStep{Done: true}, made.Next(v))
}

// TestARemovalThatAnInstanceHasYetToFollowIsNotMade: another instance has just added the member, and
// has not applied that. So no applied membership has it, and yet the removal is not made there.
func TestARemovalThatAnInstanceHasYetToFollowIsNotMade(t *testing.T) {
	without := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}}}
	with := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3, Learner: true, Joining: true}}}
	leader := &protocol.Status{Instance: 1, Self: 1, Role: protocol.Leader, Leader: 1, Config: with}
	other := &protocol.Status{Instance: 2, Self: 1, Role: protocol.Leader, Leader: 1, Config: with}
	applied := appliedAt(0, with, without)
	v := &MemberView{Now: time.Second, Instances: []*protocol.Status{leader, other}, Applied: applied}
	x := Executions{Config: member.OperationConfig{Self: 1, Heartbeat: time.Millisecond, Election: time.Second,
		GiveUp: time.Minute}}
	e := x.Begin(Operation{Kind: ChangeMembers,
		Changes: []protocol.Change{{Kind: protocol.RemoveMember, Member: protocol.Member{ID: 3}}}})
	require.Len(t, e.Next(v).Tell, 1)

	leader.Config = without
	applied.NoteConfigs(applierAt(0, 0, without, without))
	require.False(t, e.Next(v).Done, "instance 2 has it still")
	other.Config, other.Undecided = without, true
	require.False(t, e.Next(v).Done, "instance 2 may undo its removal")
	other.Undecided = false
	require.Equal(t, ExecutionStep{Done: true}, e.Next(v))
}

// TestAReshapeIsMadeAfterItWasAskedFor: this member applies an older change to 2 instances, long
// after others have, while the one that it proposed is still to come.
func TestAReshapeIsMadeAfterItWasAskedFor(t *testing.T) {
	leader := &protocol.Status{Instance: 1, Self: 1, Role: protocol.Leader, Leader: 1}
	applied := appliedAt(0, make([]protocol.Config, 3)...)
	v := &MemberView{Now: time.Second, Instances: []*protocol.Status{leader}, Applied: applied}
	x := Executions{Config: member.OperationConfig{Self: 1, Heartbeat: time.Millisecond, Election: time.Second,
		GiveUp: time.Minute}}
	e := x.Begin(Operation{Kind: Reshape, Instances: 2})
	require.Len(t, e.Next(v).Tell, 1)
	applied.NoteConfigs(applierAt(0, 0, make([]protocol.Config, 2)...))
	require.Equal(t, ExecutionStep{Confirm: true}, e.Next(v), "others may have gone on to 4 before this was asked for")
	e.Confirmed(nil)
	applied.NoteConfigs(applierAt(0, 0, make([]protocol.Config, 4)...))
	require.False(t, e.Next(v).Done)
	applied.NoteConfigs(applierAt(0, 0, make([]protocol.Config, 2)...))
	require.Equal(t, ExecutionStep{Done: true}, e.Next(v))
}

// TestALogOfOneInstanceGrowsWithAProfile: before it has one, a member may run an earlier version, which ignores the
// change. What is not applied may not be decided.
func TestALogOfOneInstanceGrowsWithAProfile(t *testing.T) {
	config := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}}}
	tuned := config.Clone()
	tuned.Profile.Version = 1
	leader := &protocol.Status{Instance: 1, Self: 1, Role: protocol.Leader, Leader: 1, Config: tuned}
	meta := member.Meta{Cursor: order.Begin(1, false), Config: config}
	applier := func() *apply.Applier {
		return apply.NewApplier(&membertest.History{}, meta, membertest.Session, 0, nil)
	}
	applied := apply.NewApplied(applier())
	v := &MemberView{Now: time.Second, Instances: []*protocol.Status{leader}, Applied: applied}
	grows := true
	x := Executions{Config: member.OperationConfig{Self: 1, Heartbeat: time.Millisecond, Election: time.Second,
		GiveUp: time.Minute, Grows: func(*protocol.Profile) bool { return grows }}}
	var refused *member.RefusedError
	step := x.Begin(Operation{Kind: Reshape, Instances: 2}).Next(v)
	require.ErrorAs(t, step.Err, &refused)
	require.Equal(t, protocol.ReasonNoProfile, refused.Reason)
	require.True(t, x.Begin(Operation{Kind: Reshape, Instances: 1}).Next(v).Confirm, "as it is")

	meta.Config = tuned
	applied.NoteConfigs(applier())
	require.Len(t, x.Begin(Operation{Kind: Reshape, Instances: 2}).Next(v).Tell, 1)

	shown := VersionEarlier // it was started with an earlier version again
	v.Version = func(id protocol.MemberID) Version {
		require.EqualValues(t, 2, id)
		return shown
	}
	x.Config.Self = 1
	step = x.Begin(Operation{Kind: Reshape, Instances: 2}).Next(v)
	require.ErrorAs(t, step.Err, &refused)
	require.Equal(t, protocol.ReasonEarlier, refused.Reason)
	require.True(t, refused.Retryable())
	shown = VersionUnknown // the handshake refuses it later
	again := x.Begin(Operation{Kind: Reshape, Instances: 2})
	require.Len(t, again.Next(v).Tell, 1)
	shown, v.Now = VersionEarlier, v.Now+time.Second
	require.Empty(t, again.Next(v).Tell, "what was proposed may be lost, and is not proposed again")
	shown = VersionTunes
	require.Len(t, again.Next(v).Tell, 1)

	grows = false
	step = x.Begin(Operation{Kind: Reshape, Instances: 2}).Next(v)
	require.ErrorAs(t, step.Err, &refused)
	require.Equal(t, protocol.ReasonInstances, refused.Reason)
}

// TestAReshapeIsNotProposedBehindASeal: what follows may have a core whose instances cannot be merged. This member has
// begun it, and applies what is before it.
func TestAReshapeIsNotProposedBehindASeal(t *testing.T) {
	config := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}}, Profile: protocol.Profile{Version: 1}}
	leader := &protocol.Status{Instance: 1, Self: 1, Role: protocol.Leader, Leader: 1, Config: config}
	applied := appliedAt(9, config)
	v := &MemberView{Now: time.Second, Instances: []*protocol.Status{leader}, Applied: applied}
	x := Executions{Config: member.OperationConfig{Self: 1, Heartbeat: time.Millisecond, Election: time.Second,
		GiveUp: time.Minute, Grows: func(p *protocol.Profile) bool { return p.Core == "" }}}
	op := Operation{Kind: Reshape, Instances: 2}
	e := x.Begin(op)
	require.Len(t, e.Next(v).Tell, 1)

	behind := config.Clone()
	behind.Profile = protocol.Profile{Version: 2, Core: "multi-paxos"}
	v.Instances[0] = &protocol.Status{Instance: 2, Self: 1, Role: protocol.Leader, Leader: 1, Config: behind}
	v.Now += time.Second
	require.Equal(t, ExecutionStep{}, e.Next(v), "it is proposed again no more, and may have taken effect")
	refused := func(e *Execution) protocol.Reason {
		step := e.Next(v)
		require.True(t, step.Done)
		return step.Err.(*member.RefusedError).Reason
	}
	next := behind.Profile.Next(setting.Values{}, 5)
	for _, op := range []Operation{
		op, {Kind: Switch, Seal: protocol.Seal{Instances: 1, Profile: next}},
		{Kind: Tune, Changes: []protocol.Change{{Kind: protocol.Tune, Profile: &next}}},
		{Kind: ChangeMembers, Changes: []protocol.Change{{Kind: protocol.RemoveMember,
			Member: protocol.Member{ID: 2}}}},
	} {
		require.Equal(t, protocol.ReasonChangePending, refused(x.Begin(op)), op.Kind)
	}
	require.Len(t, x.Begin(Operation{Kind: TransferLeader, To: 2}).Next(v).Tell, 1)

	at := order.Cursor{Position: 20, Points: []order.Point{{Instance: 2}}}
	applied.NoteConfigs(apply.NewApplier(&membertest.History{}, member.Meta{Cursor: at, Config: behind},
		membertest.Session, 0, nil))
	require.Equal(t, protocol.ReasonInstances, refused(e))
	require.Equal(t, protocol.ReasonInstances, refused(x.Begin(op)))
}

// TestAReshapeIsCheckedEachTime: it was proposed once, and dropped. Then members change, and another instance has not
// followed. It must not be proposed again before that.
func TestAReshapeIsCheckedEachTime(t *testing.T) {
	two, three := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}}},
		protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}}}
	leader := &protocol.Status{Instance: 1, Self: 1, Role: protocol.Leader, Leader: 1, Config: three, ConfigIndex: 7}
	applied := appliedAt(0, three, three, three)
	v := &MemberView{Now: time.Second, Instances: []*protocol.Status{leader}, Applied: applied}
	x := Executions{Config: member.OperationConfig{Self: 1, Heartbeat: time.Millisecond, Election: time.Second,
		GiveUp: time.Minute}}
	e := x.Begin(Operation{Kind: Reshape, Instances: 1})
	under := func() protocol.Index {
		step := e.Next(v)
		require.False(t, step.Done)
		if len(step.Tell) == 0 {
			return 0
		}
		return *step.Tell[0].Input.(protocol.Propose).Under
	}
	require.EqualValues(t, 7, under())
	v.Now += time.Second
	leader.Config, leader.ConfigIndex = two, 9
	require.Zero(t, under(), "nobody has followed")
	applied.NoteConfigs(applierAt(0, 0, two, three, two))
	require.Zero(t, under(), "one has not")
	applied.NoteConfigs(applierAt(0, 1, two, two, two))
	require.Zero(t, under(), "what was proposed first is there, after all")
	applied.NoteConfigs(applierAt(0, 0, two, two, two))
	require.EqualValues(t, 9, under())
	v.Now += time.Minute
	require.ErrorAs(t, e.Next(v).Err, new(*member.StalledError))

	e = x.Begin(e.Op)
	applied.NoteConfigs(applierAt(0, 0, two, three, two))
	step := e.Next(v)
	require.True(t, step.Done)
	require.ErrorAs(t, step.Err, new(*member.RefusedError))
}

// TestAProfileIsReplacedOnceAllMembersKnowProfiles: a member of an earlier version ignores profiles, so a tune waits
// for its update. After that the tune ends when the profile is applied, also if another one has replaced it since.
func TestAProfileIsReplacedOnceAllMembersKnowProfiles(t *testing.T) {
	config := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}}, Profile: protocol.Profile{Version: 1}}
	leader := &protocol.Status{Instance: 1, Self: 1, Role: protocol.Leader, Leader: 1, Config: config}
	applied := appliedAt(0, config)
	old := true
	v := &MemberView{Now: time.Second, Instances: []*protocol.Status{leader}, Applied: applied,
		Version: func(protocol.MemberID) Version {
			if old {
				return VersionEarlier
			}
			return VersionTunes
		}}
	x := Executions{Config: member.OperationConfig{Self: 1, Heartbeat: time.Millisecond, Election: time.Second,
		GiveUp: time.Minute}}
	next := config.Profile.Next(setting.Values{}, 5)
	op := Operation{Kind: Tune, Changes: []protocol.Change{{Kind: protocol.Tune, Profile: &next}}}
	e := x.Begin(op)
	var refused *member.RefusedError
	require.ErrorAs(t, e.Next(v).Err, &refused)
	require.Equal(t, protocol.ReasonEarlier, refused.Reason)
	require.True(t, refused.Retryable())
	x.End(e, v)

	old = false
	e = x.Begin(op)
	tell := e.Next(v).Tell
	require.Len(t, tell, 1)
	require.Equal(t, op.Changes, tell[0].Input.(protocol.ProposeChange).Changes)
	require.False(t, e.Next(v).Done)
	after := config
	after.Profile = next.Next(setting.Values{}, 6)
	applied.NoteConfigs(applierAt(7, 0, after))
	require.Equal(t, ExecutionStep{Done: true}, e.Next(v), "it was version 2, and 3 is active")
}
