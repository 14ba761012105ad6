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
	"github.com/braidlog/braid/protocol/quorum"
	"github.com/braidlog/braid/protocol/setting"
)

// sealing is a member of two that leads a log of one instance, and is asked to seal it.
type sealing struct {
	t       *testing.T
	at      order.Cursor
	leader  *protocol.Status
	applied *apply.Applied
	x       Executions
	v       *MemberView
	seal    protocol.Seal
}

func newSealing(t *testing.T) *sealing {
	d := &sealing{t: t, at: order.Begin(1, false)}
	config := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}}, Profile: protocol.Profile{Version: 1}}
	d.leader = &protocol.Status{Instance: 1, Self: 1, Role: protocol.Leader, Leader: 1, Config: config, ConfigIndex: 4}
	d.applied = apply.NewApplied(d.applier(config))
	d.v = &MemberView{Now: time.Second, Instances: []*protocol.Status{d.leader}, Applied: d.applied}
	d.versions(VersionSwitches)
	d.x.Config = member.OperationConfig{Self: 1, Heartbeat: time.Millisecond, Election: time.Second,
		GiveUp: time.Minute}
	d.seal = protocol.Seal{Instances: 1, Profile: config.Profile.Next(setting.Values{}, 5)}
	d.seal.Profile.Core = "multi-paxos"
	return d
}

func (d *sealing) applier(c protocol.Config) *apply.Applier {
	return apply.NewApplier(&membertest.History{}, member.Meta{Cursor: d.at, Config: c}, membertest.Session, 0, nil)
}

func (d *sealing) apply(c protocol.Config) { d.applied.NoteConfigs(d.applier(c)) }

func (d *sealing) versions(shown Version) {
	d.v.Version = func(protocol.MemberID) Version { return shown }
}

// begin has the operation begun, as another member asks for it.
func (d *sealing) begin() *Execution {
	op := Operation{Kind: Switch, Seal: d.seal}
	request, err := op.Encode()
	require.NoError(d.t, err)
	got, ok, err := DecodeOperation(request)
	require.NoError(d.t, err)
	require.True(d.t, ok)
	require.Equal(d.t, op, got)
	return d.x.Begin(got)
}

func (d *sealing) refused(want protocol.Reason) {
	step := d.begin().Next(d.v)
	require.True(d.t, step.Done)
	var refused *member.RefusedError
	require.ErrorAs(d.t, step.Err, &refused)
	require.Equal(d.t, want, refused.Reason)
}

// proposed is the seal that a step proposes; nil: none.
func (d *sealing) proposed(step ExecutionStep) *protocol.Seal {
	require.False(d.t, step.Done, step.Err)
	if len(step.Tell) == 0 {
		return nil
	}
	p := step.Tell[0].Input.(protocol.Propose)
	require.Equal(d.t, d.leader.ConfigIndex, *p.Under)
	s, err := protocol.DecodeSeal(p.Entries[0].Payload)
	require.NoError(d.t, err)
	return &s
}

// begun has the seal take effect: this member has applied everything before it.
func (d *sealing) begun() protocol.Config {
	c := d.seal.Begin(&d.leader.Config)
	d.at = order.Cursor{Position: 9, Points: []order.Point{{Instance: 2}}}
	d.leader = &protocol.Status{Instance: 2, Self: 1, Leader: 2, Config: c}
	d.v.Instances[0] = d.leader
	return c
}

// TestASealExpectsTheMembershipOfTheMoment: it may be lost. Then members change, and what is proposed again names them.
func TestASealExpectsTheMembershipOfTheMoment(t *testing.T) {
	d := newSealing(t)
	e := d.begin()
	s := d.proposed(e.Next(d.v))
	require.Equal(t, d.leader.Config, s.Members)
	require.Equal(t, d.seal.Profile, s.Profile)
	require.Nil(t, d.proposed(e.Next(d.v)), "it is on its way")

	d.v.Now += time.Second
	joined := d.leader.Config.Clone()
	joined.Members = append(joined.Members, protocol.Member{ID: 3})
	d.leader.Config, d.leader.ConfigIndex = joined, 7
	require.Nil(t, d.proposed(e.Next(d.v)), "what is not applied may not be decided")
	d.apply(joined)
	require.Equal(t, joined, d.proposed(e.Next(d.v)).Members)

	d.v.Now += time.Second
	c := d.begun()
	require.Equal(t, protocol.ReasonNotLeader, e.Next(d.v).Err.(*member.RefusedError).Reason,
		"the new instance has another leader, who is asked then")
	d.apply(c)
	require.Equal(t, ExecutionStep{Done: true}, e.Next(d.v))

	d.leader.Role, d.leader.Leader = protocol.Leader, 1
	require.Equal(t, ExecutionStep{Done: true}, d.begin().Next(d.v), "it is asked for again")
	d.seal.Profile.Core = "iss"
	d.refused(protocol.ReasonProfile)
}

// TestAnotherNumberOfInstancesIsAnotherSeal: a seal to the same profile with another number of instances has counted.
// Only where the number can change otherwise it says nothing, and where another seal to another core has followed.
func TestAnotherNumberOfInstancesIsAnotherSeal(t *testing.T) {
	d := newSealing(t)
	d.x.Config.Grows = func(p *protocol.Profile) bool { return p.Core == "raft" }
	other := d.begun()
	tuned := other.Clone()
	tuned.Profile = other.Profile.Next(setting.Values{}, 6)
	for _, c := range []protocol.Config{other, tuned} {
		d.apply(c)
		d.leader.Role, d.leader.Leader, d.leader.Config = protocol.Leader, 1, c
		d.seal.Instances, d.seal.Merged = 1, true
		require.Equal(t, ExecutionStep{Done: true}, d.begin().Next(d.v))
		d.seal.Instances = 2
		d.refused(protocol.ReasonProfile)
	}
	tuned.Profile.Core = "raft"
	d.apply(tuned)
	require.Equal(t, ExecutionStep{Done: true}, d.begin().Next(d.v))
}

func TestASealIsRefused(t *testing.T) {
	d := newSealing(t)
	d.seal.Profile.Version++
	d.refused(protocol.ReasonProfile)
	d.seal.Profile.Version--

	d.seal.Instances = 2
	d.refused(protocol.ReasonInstances)
	d.seal.Instances = 1

	fits := d.seal.Profile.Values
	d.seal.Profile.Values = quorum.Setting.Set(fits, quorum.Sizes(4, 2))
	d.refused(protocol.ReasonQuorums)
	applied := d.leader.Config
	d.seal.Profile.Values = quorum.Setting.Set(fits, quorum.Sizes(2, 1))
	require.False(t, d.begin().Next(d.v).Done)
	d.leader.Config = applied.Clone()
	d.leader.Config.Members = append(d.leader.Config.Members, protocol.Member{ID: 3, Learner: true, Joining: true})
	d.apply(d.leader.Config)
	d.refused(protocol.ReasonQuorums) // the third one would never become a voter
	d.seal.Profile.Values = fits
	require.False(t, d.begin().Next(d.v).Done)
	// A third voter in these zones has quorums, but no decided body need be with all of them.
	d.seal.Profile.Values = quorum.Setting.Set(fits, quorum.InZones(quorum.Zones{Count: 2, Down: 1}))
	d.refused(protocol.ReasonQuorums)
	d.seal.Profile.Values = fits
	d.leader.Config = applied
	d.apply(applied)

	d.leader.Config = applied.Clone()
	d.leader.Config.Profile.Version = 2 // a tune that is not applied yet
	d.refused(protocol.ReasonChangePending)
	d.leader.Config = applied.Clone()
	d.leader.Config.Outgoing = []protocol.MemberID{1, 2}
	d.apply(d.leader.Config)
	d.refused(protocol.ReasonChangePending)
	d.leader.Config = applied
	d.apply(applied)

	for _, shown := range []Version{VersionEarlier, VersionTunes, VersionUnknown} {
		d.versions(shown)
		d.refused(protocol.ReasonEarlier)
	}
	d.versions(VersionSwitches)
	e := d.begin()
	require.NotNil(t, d.proposed(e.Next(d.v)))
	d.versions(VersionTunes)
	d.v.Now += time.Second
	require.Nil(t, d.proposed(e.Next(d.v)), "what was proposed may be lost, and is not proposed again")
	d.v.Now += time.Minute
	require.ErrorAs(t, e.Next(d.v).Err, new(*member.StalledError))

	d.leader.Role, d.leader.Leader = protocol.Follower, 2
	d.refused(protocol.ReasonNotLeader)
}

// TestAfterASealNobodyMayBeEarlier: a member without a link may run an earlier version until the log has had a seal.
func TestAfterASealNobodyMayBeEarlier(t *testing.T) {
	d := newSealing(t)
	c := d.begun()
	d.apply(c)
	d.leader.Role, d.leader.Leader = protocol.Leader, 1
	d.seal.Profile = c.Profile.Next(setting.Values{}, 6)
	d.versions(VersionUnknown)
	require.NotNil(t, d.proposed(d.begin().Next(d.v)))
	d.versions(VersionTunes)
	d.refused(protocol.ReasonEarlier)
}

// TestASwitchShowsOnTheMemberThatWasAsked: the leader has begun what follows, and this member has not.
func TestASwitchShowsOnTheMemberThatWasAsked(t *testing.T) {
	d := newSealing(t)
	d.leader.Role, d.leader.Leader = protocol.Follower, 2
	q := NewRequest(d.x.Config, Operation{Kind: Switch, Seal: d.seal}, d.v)
	ask, _, _ := q.Next(d.v)
	require.EqualValues(t, 2, ask)
	require.ErrorIs(t, q.Unanswered(t.Context().Err()), member.ErrMaybeCommitted)
	q.Answered(d.v, nil)
	_, done, _ := q.Next(d.v)
	require.False(t, done)
	d.apply(d.begun())
	_, done, err := q.Next(d.v)
	require.NoError(t, err)
	require.True(t, done)
}

// TestASwitchThatDoesNotShowHere: a member that lags says that the change may be, not only that something took long.
func TestASwitchThatDoesNotShowHere(t *testing.T) {
	d := newSealing(t)
	d.leader.Role, d.leader.Leader = protocol.Follower, 2
	q := NewRequest(d.x.Config, Operation{Kind: Switch, Seal: d.seal}, d.v)
	_, _, _ = q.Next(d.v)
	q.Answered(d.v, nil)
	d.v.Now += d.x.Config.GiveUp
	_, done, err := q.Next(d.v)
	require.True(t, done)
	require.ErrorAs(t, err, new(*member.StalledError))
	require.ErrorIs(t, err, member.ErrMaybeCommitted)
}

// TestASwitchIsAskedForAgain: the member that was asked is stalled, or gone, and another one leads. A membership change
// ends then, because a second one could be one too many.
func TestASwitchIsAskedForAgain(t *testing.T) {
	d := newSealing(t)
	d.leader.Role, d.leader.Leader = protocol.Follower, 2
	q := NewRequest(d.x.Config, Operation{Kind: Switch, Seal: d.seal}, d.v)
	ask, _, _ := q.Next(d.v)
	require.EqualValues(t, 2, ask)
	d.v.Now += time.Minute
	require.False(t, q.Deserted(d.v), "it leads")
	d.leader.Leader = 1
	require.False(t, q.Deserted(d.v), "it may answer that it does not lead")
	d.v.Now += d.x.Config.Election
	require.True(t, q.Deserted(d.v))
	q.Lost(d.v, t.Context().Err())
	require.ErrorIs(t, q.Unanswered(nil), member.ErrMaybeCommitted)
	d.v.Now += d.x.Config.Heartbeat
	ask, _, _ = q.Next(d.v)
	require.EqualValues(t, 1, ask)
	q.Answered(d.v, q.Op.refuse(protocol.ReasonSealing, 1))
	require.ErrorIs(t, q.Unanswered(nil), member.ErrMaybeCommitted)
	d.v.Now += d.x.Config.Heartbeat
	_, _, _ = q.Next(d.v)
	q.Answered(d.v, q.Op.refuse(protocol.ReasonEarlier, 1))
	_, done, err := q.Next(d.v)
	require.True(t, done)
	require.ErrorIs(t, err, member.ErrMaybeCommitted, "the first leader may have proposed it")
	var refused *member.RefusedError
	require.ErrorAs(t, err, &refused)

	q = NewRequest(d.x.Config, Operation{Kind: ChangeMembers, Changes: []protocol.Change{{Kind: protocol.RemoveMember,
		Member: protocol.Member{ID: 2}}}}, d.v)
	_, _, _ = q.Next(d.v)
	q.Lost(d.v, t.Context().Err())
	_, done, err = q.Next(d.v)
	require.True(t, done)
	require.ErrorIs(t, err, member.ErrMaybeCommitted)
}
