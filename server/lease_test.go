package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	epb "go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	lpb "go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/testsize"
)

func TestLease(t *testing.T) {
	f := start(t)
	c, ctx := f.client, testContext(t)
	granted, err := c.Grant(ctx, 60)
	require.NoError(t, err)
	require.EqualValues(t, 0x77, granted.ClusterId)
	_, err = c.Put(ctx, "l", "v", clientv3.WithLease(granted.ID))
	require.NoError(t, err)
	alive, err := c.KeepAliveOnce(ctx, granted.ID)
	require.NoError(t, err)
	require.EqualValues(t, 60, alive.TTL)
	left, err := c.TimeToLive(ctx, granted.ID, clientv3.WithAttachedKeys())
	require.NoError(t, err)
	require.EqualValues(t, 60, left.GrantedTTL)
	require.Equal(t, [][]byte{[]byte("l")}, left.Keys)
	all, err := c.Leases(ctx)
	require.NoError(t, err)
	require.Equal(t, []clientv3.LeaseStatus{{ID: granted.ID}}, all.Leases)

	_, err = c.Revoke(ctx, granted.ID)
	require.NoError(t, err)
	got, err := c.Get(ctx, "l")
	require.NoError(t, err)
	require.Empty(t, got.Kvs)
	_, err = c.KeepAliveOnce(ctx, granted.ID)
	require.ErrorIs(t, err, rpctypes.ErrLeaseNotFound)
	gone, err := c.TimeToLive(ctx, granted.ID)
	require.NoError(t, err)
	require.EqualValues(t, -1, gone.TTL)
	_, err = c.Revoke(ctx, granted.ID)
	require.ErrorIs(t, err, rpctypes.ErrLeaseNotFound)
	_, err = c.Grant(ctx, 1<<40)
	require.ErrorIs(t, err, rpctypes.ErrLeaseTTLTooLarge)
}

func TestLeaseExpires(t *testing.T) {
	testsize.Long(t)
	f := start(t)
	c, ctx := f.client, testContext(t)
	granted, err := c.Grant(ctx, 1)
	require.NoError(t, err)
	_, err = c.Put(ctx, "l", "v", clientv3.WithLease(granted.ID))
	require.NoError(t, err)
	events := c.Watch(ctx, "l", clientv3.WithRev(2))
	for resp := range events {
		require.NoError(t, resp.Err())
		if e := resp.Events[len(resp.Events)-1]; e.Type == clientv3.EventTypeDelete {
			return
		}
	}
	t.Fatal("the watch ended before the lease did")
}

// Without a primary lessor no client can renew; the keep-alive continues when there is one.
func TestKeepAliveFollowsThePrimary(t *testing.T) {
	f := start(t)
	c, ctx := f.client, testContext(t)
	granted, err := c.Grant(ctx, 60)
	require.NoError(t, err)
	eventually(t, "the primary", f.store.Leases().IsPrimary)
	f.fake.set(func(l *fakeLog) { l.leader = 0x20 })
	eventually(t, "demotion", func() bool { return !f.store.Leases().IsPrimary() })
	renewed := make(chan error, 1)
	renew := func() {
		_, err := c.KeepAliveOnce(ctx, granted.ID)
		renewed <- err
	}
	go renew()
	select {
	case err := <-renewed:
		require.Error(t, err, "renewed by a member that is not the primary")
		go renew()
	case <-time.After(100 * time.Millisecond):
	}
	f.fake.set(func(l *fakeLog) { l.leader, l.term = 0x10, 3 })
	require.NoError(t, <-renewed)
}

// What goes to the primary on another member passes through the same encoding.
func TestAskAnotherMember(t *testing.T) {
	f := start(t)
	c, ctx := f.client, testContext(t)
	granted, err := c.Grant(ctx, 60)
	require.NoError(t, err)
	eventually(t, "the primary", f.store.Leases().IsPrimary)
	question, err := encodeAsk(askRenew, nil, keepAliveRequest(granted.ID))
	require.NoError(t, err)
	reply, err := f.asker.member(ctx, 0x99, question)
	require.NoError(t, err)
	require.NotEmpty(t, reply)
	for _, garbage := range [][]byte{nil, {askRenew}, {askRenew, 200}, {askRenew, 0, 0xff}, {'?', 0},
		append([]byte{askPromote, 3}, "\xff\xff\xff"...)} {
		_, err := f.asker.member(ctx, 0x99, garbage)
		require.Error(t, err, "%q", garbage)
	}
}

// TestKeepAliveInTimeCounts: the confirmation of a renewal by the cluster needs longer than the lease. The keep-alive
// came in time all the same.
func TestKeepAliveInTimeCounts(t *testing.T) {
	testsize.Long(t)
	t.Parallel() // it waits for a clock
	f := start(t)
	c, ctx := f.client, testContext(t)
	eventually(t, "the primary", f.store.Leases().IsPrimary)
	granted, err := c.Grant(ctx, 1)
	require.NoError(t, err)
	held := make(chan struct{})
	f.fake.set(func(l *fakeLog) { l.held = held })
	renewed := make(chan error, 1)
	go func() {
		_, err := c.KeepAliveOnce(ctx, granted.ID)
		renewed <- err
	}()
	<-time.After(3 * time.Second) // longer than the time to live
	f.fake.set(func(l *fakeLog) { l.held = nil })
	close(held)
	require.NoError(t, <-renewed)
	eventually(t, "its end", func() bool {
		left, err := c.TimeToLive(ctx, granted.ID)
		return err == nil && left.TTL == -1
	})
}

// TestKeepAliveBehindAnother: two leases share a stream, as all of a client do. While the end of
// the first is being decided, and that takes long, the second is renewed.
func TestKeepAliveBehindAnother(t *testing.T) {
	testsize.Long(t)
	t.Parallel() // it waits for a clock
	f := start(t)
	c, ctx := f.client, testContext(t)
	eventually(t, "the primary", f.store.Leases().IsPrimary)
	first, err := c.Grant(ctx, 1)
	require.NoError(t, err)
	second, err := c.Grant(ctx, 60)
	require.NoError(t, err)
	f.fake.set(func(l *fakeLog) { l.refuse = braid.ErrOverloaded })
	<-time.After(2 * time.Second) // the first has expired
	stream, err := pb.NewLeaseClient(c.ActiveConnection()).LeaseKeepAlive(ctx)
	require.NoError(t, err)
	f.fake.set(func(l *fakeLog) { l.reads = true })
	require.NoError(t, stream.Send(keepAliveRequest(first.ID)))
	require.NoError(t, stream.Send(keepAliveRequest(second.ID)))
	answer, err := stream.Recv()
	require.NoError(t, err)
	require.EqualValues(t, second.ID, answer.ID)
	require.EqualValues(t, 60, answer.TTL)
	f.fake.set(func(l *fakeLog) { l.refuse = nil })
	answer, err = stream.Recv()
	require.NoError(t, err)
	require.EqualValues(t, first.ID, answer.ID)
	require.Zero(t, answer.TTL)
}

func TestLockAndElection(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	conn := f.client.ActiveConnection()
	granted, err := f.client.Grant(ctx, 60)
	require.NoError(t, err)
	locked, err := lpb.NewLockClient(conn).Lock(ctx, &lpb.LockRequest{Name: []byte("lock"), Lease: int64(granted.ID)})
	require.NoError(t, err)

	session, err := concurrency.NewSession(f.client)
	require.NoError(t, err)
	mutex := concurrency.NewMutex(session, "lock")
	require.ErrorIs(t, mutex.TryLock(ctx), concurrency.ErrLocked)
	_, err = lpb.NewLockClient(conn).Unlock(ctx, &lpb.UnlockRequest{Key: locked.Key})
	require.NoError(t, err)
	require.NoError(t, mutex.Lock(ctx))
	require.NoError(t, mutex.Unlock(ctx))
	require.NoError(t, session.Close())

	elections := epb.NewElectionClient(conn)
	watching, err := elections.Observe(ctx, &epb.LeaderRequest{Name: []byte("vote")})
	require.NoError(t, err)
	won, err := elections.Campaign(ctx, &epb.CampaignRequest{Name: []byte("vote"), Lease: int64(granted.ID),
		Value: []byte("me")})
	require.NoError(t, err)
	seen, err := watching.Recv()
	require.NoError(t, err)
	require.Equal(t, "me", string(seen.Kv.Value))
	_, err = elections.Proclaim(ctx, &epb.ProclaimRequest{Leader: won.Leader, Value: []byte("still me")})
	require.NoError(t, err)
	leader, err := elections.Leader(ctx, &epb.LeaderRequest{Name: []byte("vote")})
	require.NoError(t, err)
	require.Equal(t, "still me", string(leader.Kv.Value))
	_, err = elections.Resign(ctx, &epb.ResignRequest{Leader: won.Leader})
	require.NoError(t, err)
}

func keepAliveRequest(id clientv3.LeaseID) *pb.LeaseKeepAliveRequest {
	return &pb.LeaseKeepAliveRequest{ID: int64(id)}
}
