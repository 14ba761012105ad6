package judge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/sim/world"
	"github.com/braidlog/braid/protocol"
)

func members(ids ...protocol.MemberID) (c protocol.Config) {
	for _, id := range ids {
		c.Members = append(c.Members, protocol.Member{ID: id, Slot: uint8(id - 1)})
	}
	return c
}

func newCourt(t *testing.T) (*Court, *world.Base) {
	base := &world.Base{Tick: time.Second}
	of := func(*protocol.Profile) InstanceRules { return InstanceRules{Core: registry.Find("raft").Core} }
	c := NewCourt(Rules{Of: of, First: members(1, 2, 3)}, base)
	t.Cleanup(func() { require.Nil(t, base.Broken) })
	return c, base
}

// TestAMembershipMustHaveBeenDecided: an operation that is reported as done was decided at some moment since the
// request.
func TestAMembershipMustHaveBeenDecided(t *testing.T) {
	c, base := newCourt(t)
	remove := &cluster.Operation{Kind: cluster.ChangeMembers,
		Changes: []protocol.Change{{Kind: protocol.RemoveMember, Member: protocol.Member{ID: 3}}}}
	require.ErrorContains(t, c.Done(Asked{By: 1, At: base.Now()}, remove), "instance 1 has not decided it")
	base.Run(time.Second)
	two := members(1, 2)
	require.NoError(t, c.Configure(c.First, &two))
	require.NoError(t, c.Done(Asked{By: 1, At: base.Now()}, remove))
	base.Run(time.Minute)
	three := members(1, 2, 3)
	require.NoError(t, c.Configure(c.First, &three))
	require.NoError(t, c.Done(Asked{By: 1, At: time.Second}, remove), "it was in force then")
	base.Run(time.Hour)
	require.Error(t, c.Done(Asked{By: 1, At: base.Now()}, remove), "it no longer was")
}

// TestARefusalMayClaimThatThereIsNoSuchMember: only the removal of one member that is refused because of its id.
func TestARefusalMayClaimThatThereIsNoSuchMember(t *testing.T) {
	refused := func(reason protocol.Reason) error { return &member.RefusedError{Reason: reason} }
	remove := protocol.Change{Kind: protocol.RemoveMember, Member: protocol.Member{ID: 3}}
	update := protocol.Change{Kind: protocol.UpdateMember, Member: protocol.Member{ID: 3}}
	claims := func(err error, changes ...protocol.Change) bool {
		return ClaimsUnknown(&cluster.Operation{Kind: cluster.ChangeMembers, Changes: changes}, err)
	}
	require.True(t, claims(refused(protocol.ReasonUnknownMember), remove))
	require.False(t, claims(refused(protocol.ReasonNoLeader), remove))
	require.False(t, claims(nil, remove))
	require.False(t, claims(refused(protocol.ReasonUnknownMember), update))
	require.False(t, claims(refused(protocol.ReasonUnknownMember), remove, remove), "a core may refuse several as one")
}

// TestInstancesFollowTheProfile: other instances follow the profile of the first one, and never go back.
func TestInstancesFollowTheProfile(t *testing.T) {
	c, _ := newCourt(t)
	other := c.Of(2)
	one, two := members(1, 2, 3), members(1, 2, 3)
	one.Profile.Version, two.Profile.Version = 1, 2
	require.ErrorContains(t, c.Configure(other, &one), "not decided")
	require.NoError(t, c.Configure(c.First, &one))
	require.NoError(t, c.Configure(c.First, &two))
	require.NoError(t, c.Configure(other, &two))
	require.ErrorContains(t, c.Configure(other, &one), "goes back")
	require.NoError(t, c.Profile(&one.Profile, 0))
	require.ErrorContains(t, c.Profile(&one.Profile, 2), "goes back")
	require.ErrorContains(t, c.FollowsProfile(2, &one.Profile), "the last one is 2")
	require.NoError(t, c.FollowsProfile(1, &two.Profile))
}

// TestOnlyMembersThatLedLead: a transfer of leadership to a member that never led is not done.
func TestOnlyMembersThatLedLead(t *testing.T) {
	c, _ := newCourt(t)
	transfer := &cluster.Operation{Kind: cluster.TransferLeader, To: 2}
	require.ErrorContains(t, c.Done(Asked{By: 1}, transfer), "never elected")
	c.First.Led[2] = true
	require.NoError(t, c.Done(Asked{By: 1}, transfer))
}

// TestLeadersBeforeASeal: who was asked before it began the instances behind a seal may name the leader before it, and
// one that another member elects there. Who has begun them may not.
func TestLeadersBeforeASeal(t *testing.T) {
	c, _ := newCourt(t)
	old := c.First
	seal := protocol.Seal{Instances: 1, Profile: protocol.Profile{Version: 1}}
	require.NoError(t, c.sealed(&counted{seal, []uint64{1}, members(1, 2, 3)}, []uint64{2}))
	require.EqualValues(t, 2, c.First.ID)
	transfer := &cluster.Operation{Kind: cluster.TransferLeader, To: 2}
	require.ErrorContains(t, c.Done(Asked{By: 3, First: 1}, transfer), "never elected")
	old.Led[2] = true
	require.NoError(t, c.Done(Asked{By: 3, First: 1}, transfer))
	require.ErrorContains(t, c.Done(Asked{By: 3, First: 2}, transfer), "never elected")
	c.First.Led[2] = true
	require.NoError(t, c.Done(Asked{By: 3, First: 2}, transfer))
}

// TestALeaderIsRemovedBehindASeal: whether a leader is removed is judged in the first instance, not in one before it.
func TestALeaderIsRemovedBehindASeal(t *testing.T) {
	c, base := newCourt(t)
	c.First.Led[3] = true
	seal := protocol.Seal{Instances: 1, Profile: protocol.Profile{Version: 1}}
	require.NoError(t, c.sealed(&counted{seal, []uint64{1}, members(1, 2, 3)}, []uint64{2}))
	remove := &cluster.Operation{Kind: cluster.ChangeMembers,
		Changes: []protocol.Change{{Kind: protocol.RemoveMember, Member: protocol.Member{ID: 3}}}}
	asked := Asked{By: 1, At: base.Now(), First: 1}
	require.ErrorContains(t, c.Done(asked, remove), "instance 2 has not decided it")
	two := members(1, 2)
	two.Profile.Version = 1
	require.NoError(t, c.Configure(c.First, &two))
	require.NoError(t, c.Done(asked, remove))
}

// TestRetiredInstancesObeyTheFirst: a retired instance follows the membership of the first one.
func TestRetiredInstancesObeyTheFirst(t *testing.T) {
	c, _ := newCourt(t)
	other := c.Of(2)
	require.Same(t, other, c.Find(2))
	require.Nil(t, c.Find(3))
	require.False(t, other.Void(&protocol.Entry{Index: 1}))
	other.Ended = true
	require.True(t, other.Void(&protocol.Entry{Index: 1}), "it never decided anything")
	two := members(1, 2)
	require.NoError(t, c.Configure(other, &two), "only the first instance decides for it")
	require.Len(t, other.Configs, 2)
	require.NoError(t, c.Configure(c.First, &two))
	c.Check()
}
