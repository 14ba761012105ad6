package store

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/lease"

	"github.com/braidlog/braid/internal/testsize"
)

func TestLeases(t *testing.T) {
	n := openTemp(t)
	n.must(grant(7, 100))
	require.ErrorIs(t, n.do(grant(7, 100)).Err, lease.ErrLeaseExists)
	drawn := n.must(grant(0, 100)).Resp.(*pb.LeaseGrantResponse)
	require.Positive(t, drawn.ID)
	n.must(putLease("a", "1", 7))
	n.must(putLease("b", "2", 7))

	leases, err := n.Leases().List(context.Background())
	require.NoError(t, err)
	require.Len(t, leases.Leases, 2)

	n.must(revoke(7))
	require.Equal(t, "", n.get("a"))
	require.Equal(t, "", n.get("b"))
	require.ErrorIs(t, n.do(revoke(7)).Err, lease.ErrLeaseNotFound)
}

// TestPrimary follows who the primary lessor is through the order.
func TestPrimary(t *testing.T) {
	n := openTemp(t)
	n.must(grant(7, 100))
	_, err := n.renewNow(context.Background(), 7)
	require.ErrorIs(t, err, ErrNotPrimary)
	_, err = n.timeToLive(context.Background(), &pb.LeaseTimeToLiveRequest{ID: 7})
	require.ErrorIs(t, err, ErrNotPrimary)

	n.raw(n.Leases().Claim())
	require.True(t, n.Leases().IsPrimary())
	require.EqualValues(t, 0xa1, n.Leases().Primary())
	ttl, err := n.renewNow(context.Background(), 7)
	require.NoError(t, err)
	require.EqualValues(t, 100, ttl)
	n.must(putLease("a", "1", 7))
	left, err := n.timeToLive(context.Background(), &pb.LeaseTimeToLiveRequest{ID: 7, Keys: true})
	require.NoError(t, err)
	require.InDelta(t, 100, left.TTL, 5)
	require.Equal(t, [][]byte{[]byte("a")}, left.Keys)
	_, err = n.renewNow(context.Background(), 8)
	require.ErrorIs(t, err, lease.ErrLeaseNotFound)

	n.raw(claimCommand(0xb2, 5)) // another member
	require.False(t, n.Leases().IsPrimary())
	require.EqualValues(t, 0xb2, n.Leases().Primary())
	_, err = n.renewNow(context.Background(), 7)
	require.ErrorIs(t, err, ErrNotPrimary)
}

// TestClaimAfterDemotion lets a claim be applied after its member stopped being the leader.
func TestClaimAfterDemotion(t *testing.T) {
	n := openTemp(t)
	claim := n.Leases().Claim()
	n.Leases().Demote()
	n.raw(claim)
	require.False(t, n.Leases().IsPrimary())
	require.EqualValues(t, 0xa1, n.Leases().Primary())
}

// TestClaimOfAFormerIncarnation applies, after a restart, a claim that was made before it.
func TestClaimOfAFormerIncarnation(t *testing.T) {
	former, n := openTemp(t), openTemp(t)
	old := former.Leases().Claim()
	claim := n.Leases().Claim()
	n.raw(old)
	require.False(t, n.Leases().IsPrimary())
	n.raw(claim)
	require.True(t, n.Leases().IsPrimary())
}

// TestClaimInSnapshot restores a state that includes this member's claim.
func TestClaimInSnapshot(t *testing.T) {
	other, n := openTemp(t), openTemp(t)
	other.must(grant(7, 100))
	other.raw(n.Leases().Claim())
	require.NoError(t, n.Restore(snapshotReader(other)))
	require.True(t, n.Leases().IsPrimary())
	ttl, err := n.renewNow(context.Background(), 7)
	require.NoError(t, err)
	require.EqualValues(t, 100, ttl)

	n.Leases().Demote()
	require.NoError(t, n.Restore(snapshotReader(other)))
	require.False(t, n.Leases().IsPrimary())
}

func TestExpiredLeaseIsRevoked(t *testing.T) {
	testsize.Long(t)
	t.Parallel() // it waits for a clock
	n := openTemp(t)
	n.must(grant(7, 1))
	n.must(putLease("a", "1", 7))
	n.raw(n.Leases().Claim())
	end := within(t, n.Wanted())
	require.Equal(t, "1", n.get("a"))
	require.NoError(t, n.raw(end)[0].Err)
	require.Equal(t, "", n.get("a"))
}

// TestDeposedPrimaryRevokesNothing delays what a primary decided until there is a newer one.
func TestDeposedPrimaryRevokesNothing(t *testing.T) {
	testsize.Long(t)
	t.Parallel() // it waits for a clock
	n := openTemp(t)
	n.must(grant(7, 1))
	n.must(putLease("a", "1", 7))
	n.raw(n.Leases().Claim())
	end := within(t, n.Wanted())
	n.raw(claimCommand(0xb2, 5))
	require.ErrorIs(t, n.raw(end)[0].Err, ErrNotPrimary)
	require.Equal(t, "1", n.get("a"))
}

// TestCheckpointSurvives has a lease's age ordered, so that a new primary knows it, also
// after a restart.
func TestCheckpointSurvives(t *testing.T) {
	testsize.Long(t)
	t.Parallel() // it waits for a clock
	o := testOptions(t.TempDir())
	o.Leases.CheckpointInterval = time.Second
	n := open(t, o)
	n.must(grant(7, 1000))
	n.raw(n.Leases().Claim())
	checkpoint := within(t, n.Wanted())
	c, err := decode(checkpoint)
	require.NoError(t, err)
	require.NotNil(t, c.request.LeaseCheckpoint)
	c.request.LeaseCheckpoint.Checkpoints[0].Remaining_TTL = 300 // as if 700 s had passed
	checkpoint, err = encode(guardedPrefix(n.leases.position.Load()), c.request)
	require.NoError(t, err)
	require.NoError(t, n.raw(checkpoint)[0].Err)
	require.NoError(t, n.Close())

	n = open(t, o)
	n.raw(n.Leases().Claim())
	left, err := n.timeToLive(context.Background(), &pb.LeaseTimeToLiveRequest{ID: 7})
	require.NoError(t, err)
	require.InDelta(t, 300, left.TTL, 5)
	require.EqualValues(t, 1000, left.GrantedTTL)
	require.NoError(t, n.Close())
}

// TestRenewalOutlivesItsPrimary: a renewal that was answered holds under the next primary, also
// if a checkpoint had shortened the lease before, and the primary dies right after its answer:
// what it wanted ordered and is not yet is lost.
func TestRenewalOutlivesItsPrimary(t *testing.T) {
	n := openTemp(t)
	n.must(grant(7, 1000))
	n.raw(n.Leases().Claim())
	n.raw(n.checkpoint(7, 300))
	answered := make(chan error, 1)
	go func() {
		_, err := n.renewNow(context.Background(), 7)
		answered <- err
	}()
	wanted := within(t, n.Wanted())
	select {
	case err := <-answered:
		require.NoError(t, err) // and what it wanted is lost
	case <-time.After(100 * time.Millisecond):
		n.raw(wanted)
		require.NoError(t, within(t, answered))
	}
	n.raw(n.Leases().Claim())
	require.Greater(t, n.left(7), 990*time.Second)
}

// TestCheckpointOvertakenByRenewal orders a checkpoint, late, that was decided before a renewal
// was answered.
func TestCheckpointOvertakenByRenewal(t *testing.T) {
	n := openTemp(t)
	n.must(grant(7, 1000))
	n.raw(n.Leases().Claim())
	late := n.checkpoint(7, 300)
	answered := make(chan error, 1)
	go func() {
		_, err := n.renewNow(context.Background(), 7)
		answered <- err
	}()
	select {
	case err := <-answered:
		require.NoError(t, err)
	case wanted := <-n.Wanted():
		n.raw(wanted)
		require.NoError(t, within(t, answered))
	}
	n.raw(late)
	n.raw(n.Leases().Claim())
	require.Greater(t, n.left(7), 990*time.Second)
}

// checkpoint is a command of the primary lessor, as if time had passed.
func (n *node) checkpoint(id, remaining int64) []byte {
	n.t.Helper()
	decided := n.lessor.clock.Shorten(id, remaining)
	data, err := n.lessor.checkpoint(decided.Number, decided.Checkpoints)
	require.NoError(n.t, err)
	return data
}

// left is what is left of a lease.
func (n *node) left(id int64) time.Duration {
	n.t.Helper()
	resp, err := n.timeToLive(context.Background(), &pb.LeaseTimeToLiveRequest{ID: id})
	require.NoError(n.t, err)
	return time.Duration(resp.TTL) * time.Second
}

func TestWantedIsBounded(t *testing.T) {
	var w wanted
	w.init()
	big := make([]byte, wantedBytes/4)
	accepted := 0
	for range 20 {
		if w.add(big) {
			accepted++
		}
	}
	require.Less(t, accepted, 10) // four, and what was taken out meanwhile
	require.NotZero(t, accepted)
	w.close()
	w.close()
	require.False(t, w.add([]byte("x")))
	for range w.c {
		require.LessOrEqual(t, accepted, 10)
	}
}

// A claim soon after another one begins a recorded term: the first renewal of a lease waits until it is in the log.
func TestClaimSoonAfterAnotherIsRecorded(t *testing.T) {
	n := openTemp(t)
	now := time.Now()
	n.lessor.now = func() time.Time { return now }
	n.must(grant(7, 100))
	first := n.Leases().Claim()
	n.raw(first)
	require.False(t, n.leases.newest.recorded())
	renew := func() chan int64 {
		done := make(chan int64, 1)
		go func() {
			ttl, err := n.renewNow(context.Background(), 7)
			require.NoError(t, err)
			done <- ttl
		}()
		return done
	}
	require.EqualValues(t, 100, within(t, renew()), "nothing is ordered")
	now = now.Add(50 * time.Second)
	n.raw(n.Leases().Claim())
	require.True(t, n.leases.newest.recorded())
	left, err := n.lessor.left(7)
	require.NoError(t, err)
	require.Equal(t, 101*time.Second, left, "the term before was not recorded")
	now = now.Add(50 * time.Second)
	n.raw(n.Leases().Claim())
	left, err = n.lessor.left(7)
	require.NoError(t, err)
	require.Equal(t, 51*time.Second, left, "nobody renewed it")
	renewed := renew()
	n.raw(within(t, n.Wanted()))
	require.EqualValues(t, 100, within(t, renewed))
	require.EqualValues(t, 100, within(t, renew()), "once is enough")
	now = now.Add(50 * time.Second)
	n.raw(n.Leases().Claim())
	left, err = n.lessor.left(7)
	require.NoError(t, err)
	require.Equal(t, 101*time.Second, left)
}

// renewNow renews a lease for the user of ctx, without confirmation that n is still the primary lessor.
func (n *node) renewNow(ctx context.Context, id int64) (ttl int64, err error) {
	user, err := n.Rights().AuthInfo(ctx)
	if err != nil {
		return -1, err
	}
	renewal, err := n.Leases().Renew(user, id)
	if err != nil {
		return -1, err
	}
	defer renewal.End()
	return renewal.Answer(ctx, n.lessor.now())
}

func (n *node) timeToLive(ctx context.Context, r *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	user, err := n.Rights().AuthInfo(ctx)
	if err != nil {
		return nil, err
	}
	return n.Leases().TimeToLive(user, r)
}

// Ids of leases that clients leave to the server are positive and follow each other, and those of another member are
// elsewhere.
func TestIDsOfLeases(t *testing.T) {
	one, two := openTemp(t), openTemp(t)
	id := func(n *node) int64 {
		t.Helper()
		res := n.must(grant(0, 60)).Resp
		return res.(*pb.LeaseGrantResponse).ID
	}
	first := id(one)
	require.Positive(t, first)
	require.Equal(t, first+1, id(one))
	other := id(two)
	require.Positive(t, other)
	require.NotContains(t, []int64{first, first + 1}, other)
}

// TestRestoringPrimaryPromisesNothing: while a primary lessor restores a snapshot, it knows neither how much time its
// leases have nor which checkpoints of theirs are on their way, which must be cleared before a renewal is answered.
func TestRestoringPrimaryPromisesNothing(t *testing.T) {
	during := func() {}
	n := openAt(t, keysRestored, func() { during() })
	n.must(grant(7, 100))
	n.raw(n.Leases().Claim())
	renewal, err := n.Leases().Renew(nil, 7)
	require.NoError(t, err)
	defer renewal.End()
	renewed, asked := make(chan error, 1), make(chan error, 1)
	during = func() {
		runUntilItWaits(func() {
			_, err := renewal.Answer(context.Background(), n.lessor.now())
			renewed <- err
		})
		runUntilItWaits(func() {
			_, err := n.timeToLive(context.Background(), &pb.LeaseTimeToLiveRequest{ID: 7})
			asked <- err
		})
	}
	require.NoError(t, n.Restore(snapshotReader(n)))
	require.ErrorIs(t, <-renewed, ErrNotPrimary)
	require.ErrorIs(t, <-asked, ErrNotPrimary)
	left, err := n.timeToLive(context.Background(), &pb.LeaseTimeToLiveRequest{ID: 7})
	require.NoError(t, err)
	require.InDelta(t, 100, left.TTL, 5)
}
