package server

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/protocol"
)

func TestMembers(t *testing.T) {
	f := start(t)
	c, ctx := f.client, testContext(t)
	eventually(t, "name and client URLs", func() bool {
		list, err := c.MemberList(ctx)
		return err == nil && len(list.Members) == 1 && list.Members[0].Name == "one" &&
			len(list.Members[0].ClientURLs) == 1 && list.Members[0].ClientURLs[0] == "http://"+f.addr
	})
	urls := []string{"http://127.0.0.1:2"}
	added, err := c.MemberAddAsLearner(ctx, urls)
	require.NoError(t, err)
	require.EqualValues(t, JoinedMemberID(urls, "test"), added.Member.ID)
	require.Len(t, added.Members, 2)
	_, err = c.MemberAdd(ctx, urls)
	require.ErrorIs(t, err, rpctypes.ErrMemberExist)
	_, err = c.MemberAdd(ctx, []string{"http://127.0.0.1:2", "http://127.0.0.1:3"})
	require.ErrorIs(t, err, rpctypes.ErrPeerURLExist)
	_, err = c.MemberAddAsLearner(ctx, []string{"http://127.0.0.1:4"})
	require.ErrorIs(t, err, rpctypes.ErrTooManyLearners)
	_, err = pb.NewClusterClient(c.ActiveConnection()).MemberAdd(ctx, &pb.MemberAddRequest{PeerURLs: []string{"nonsense"}})
	requireStatus(t, rpctypes.ErrGRPCMemberBadURLs, err)

	_, err = c.MemberPromote(ctx, added.Member.ID)
	require.ErrorIs(t, err, rpctypes.ErrMemberLearnerNotReady)
	f.fake.set(func(l *fakeLog) {
		l.peers = []protocol.PeerStatus{{ID: braid.MemberID(added.Member.ID), Match: 1 << 20}}
	})
	promoted, err := c.MemberPromote(ctx, added.Member.ID)
	require.NoError(t, err)
	require.False(t, promoted.Members[1].IsLearner)
	_, err = c.MemberPromote(ctx, added.Member.ID)
	require.ErrorIs(t, err, rpctypes.ErrMemberNotLearner)
	_, err = c.MemberPromote(ctx, 99)
	require.ErrorIs(t, err, rpctypes.ErrMemberNotFound)

	updated, err := c.MemberUpdate(ctx, 0x10, []string{"http://127.0.0.1:9"})
	require.NoError(t, err)
	require.Equal(t, []string{"http://127.0.0.1:9"}, updated.Members[0].PeerURLs)
	require.Equal(t, "one", updated.Members[0].Name)
	_, err = c.MemberUpdate(ctx, 99, urls)
	require.ErrorIs(t, err, rpctypes.ErrMemberNotFound)

	removed, err := c.MemberRemove(ctx, added.Member.ID)
	require.NoError(t, err)
	require.Len(t, removed.Members, 1)
	_, err = c.MemberRemove(ctx, added.Member.ID)
	require.ErrorIs(t, err, rpctypes.ErrMemberNotFound)
	again, err := c.MemberAdd(ctx, urls)
	require.NoError(t, err, "another member may have the URLs of one that was removed")
	require.NotEqual(t, added.Member.ID, again.Member.ID, "it is another member")
}

// startPublished starts a member and waits until its name and URLs are in the list.
func startPublished(t *testing.T) *fixture {
	f := start(t)
	eventually(t, "name and client URLs", func() bool { return len(f.cluster.find(0x10).ClientURLs) == 1 })
	return f
}

// TestPeerURLsOfOthers updates and adds members with URLs that other members have: in the list
// that is looked at first, and in the one at the moment when the change is ordered.
func TestPeerURLsOfOthers(t *testing.T) {
	f := startPublished(t)
	c, ctx := f.client, testContext(t)
	added, err := c.MemberAddAsLearner(ctx, []string{"http://127.0.0.1:2"})
	require.NoError(t, err)
	_, err = c.MemberUpdate(ctx, 0x10, []string{"http://127.0.0.1:9", "http://127.0.0.1:2"})
	require.ErrorIs(t, err, rpctypes.ErrPeerURLExist)
	_, err = c.MemberUpdate(ctx, added.Member.ID, []string{"http://127.0.0.1:2", "http://127.0.0.1:3"})
	require.NoError(t, err, "its own URL")

	takes := func(url string) {
		f.fake.set(func(l *fakeLog) {
			l.meanwhile = func(l *fakeLog) { l.members[1].PeerURLs = []string{url} }
		})
	}
	takes("http://127.0.0.1:4")
	_, err = c.MemberUpdate(ctx, 0x10, []string{"http://127.0.0.1:4"})
	require.ErrorIs(t, err, rpctypes.ErrPeerURLExist)
	takes("http://127.0.0.1:5")
	_, err = c.MemberAdd(ctx, []string{"http://127.0.0.1:5"})
	require.ErrorIs(t, err, rpctypes.ErrPeerURLExist)
}

// TestUpdateLosesNothing has a member publish its name and client URLs, and get other peer
// URLs, between the moment when a change is made up and when it is ordered.
func TestUpdateLosesNothing(t *testing.T) {
	f := startPublished(t)
	c, ctx := f.client, testContext(t)
	added, err := c.MemberAddAsLearner(ctx, []string{"http://127.0.0.1:2"})
	require.NoError(t, err)
	publishes := func(name string) {
		f.fake.set(func(l *fakeLog) {
			l.meanwhile = func(l *fakeLog) {
				l.members[1].Name, l.members[1].ClientURLs = name, []string{"http://" + name}
			}
		})
	}
	learner := func() braid.Member { return *f.cluster.find(added.Member.ID) }
	f.fake.set(func(l *fakeLog) { l.members[1].Name = "a former name" })

	publishes("two")
	_, err = c.MemberUpdate(ctx, added.Member.ID, []string{"http://127.0.0.1:3"})
	require.NoError(t, err)
	require.Equal(t, "two", learner().Name)
	require.Equal(t, []string{"http://two"}, learner().ClientURLs)
	require.Equal(t, []string{"http://127.0.0.1:3"}, learner().PeerURLs)

	publishes("three")
	f.fake.set(func(l *fakeLog) {
		l.peers = []protocol.PeerStatus{{ID: braid.MemberID(added.Member.ID), Match: 1 << 20}}
	})
	_, err = c.MemberPromote(ctx, added.Member.ID)
	require.NoError(t, err)
	require.Equal(t, "three", learner().Name)
	require.False(t, learner().Learner)
}

// TestPublishLosesNothing has an operator move a member while the member publishes its name.
func TestPublishLosesNothing(t *testing.T) {
	f := start(t, func(c *Config) {
		open := c.openLog
		c.openLog = func(o braid.Options, sm braid.DurableStateMachine) (Log, error) {
			l, err := open(o, sm)
			l.(*fakeLog).meanwhile = func(l *fakeLog) { l.members[0].PeerURLs = []string{"http://127.0.0.1:9"} }
			return l, err
		}
	})
	c, ctx := f.client, testContext(t)
	eventually(t, "the client URLs", func() bool {
		list, err := c.MemberList(ctx)
		return err == nil && len(list.Members[0].ClientURLs) == 1
	})
	list, err := c.MemberList(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"http://127.0.0.1:9"}, list.Members[0].PeerURLs)
}

func TestRefusedChange(t *testing.T) {
	for reason, want := range map[protocol.Reason]codes.Code{
		protocol.ReasonChangePending: codes.Unavailable,
		protocol.ReasonUnsafeChange:  codes.Unavailable,
		protocol.ReasonRestriping:    codes.Unavailable,
		protocol.ReasonInvalidChange: codes.FailedPrecondition,
	} {
		err := toStatus(&braid.RefusedError{What: "change", Reason: reason})
		require.Equal(t, want, status.Code(err))
		require.Contains(t, err.Error(), reason.String())
	}
	// Clients that repeat what is Unavailable go to another member.
	err := toStatus(&braid.RefusedError{What: "proposal", Reason: braid.ReasonRemoved})
	require.Equal(t, rpctypes.ErrGRPCStopped, err)
}

func TestLearnerServesLocalReadsOnly(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	_, err := f.client.Put(ctx, "k", "v")
	require.NoError(t, err)
	f.fake.set(func(l *fakeLog) { l.members[0].Learner = true })
	eventually(t, "the learner's role", func() bool { return f.self.Load().learner })
	_, err = f.kvClient().Range(ctx, &pb.RangeRequest{Key: []byte("k")})
	requireStatus(t, rpctypes.ErrGRPCNotSupportedForLearner, err)
	_, err = f.kvClient().Range(ctx, &pb.RangeRequest{Key: []byte("k"), Serializable: true})
	require.NoError(t, err)
	st, err := f.client.Status(ctx, f.addr)
	require.NoError(t, err)
	require.True(t, st.IsLearner)
	w := f.rawWatch(t, ctx)
	_, err = w.stream.Recv()
	requireStatus(t, rpctypes.ErrGRPCNotSupportedForLearner, err)
}
