package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	bolt "go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/schema"

	"github.com/braidlog/braid/internal/store/leaseclock"
)

// committed returns the position in what a store has committed, and the leases with the rest of their time.
func committed(t *testing.T, o Options) (position uint64, leases map[int64]int64) {
	t.Helper()
	o.Dir = clone(t, o.Dir)
	db, err := openDatabase(o.path(), &o, zap.NewNop(), func(err error) { t.Error(err) })
	require.NoError(t, err)
	defer db.be.Close()
	leases = map[int64]int64{}
	tx := db.be.ReadTx()
	tx.RLock()
	defer tx.RUnlock()
	for _, l := range schema.MustUnsafeGetAllLeases(tx) {
		leases[l.ID] = l.RemainingTTL
	}
	position, _ = schema.UnsafeReadConsistentIndex(tx)
	return position, leases
}

// What is committed has the leases of its position, wherever the commit comes.
func TestLeasesAreCommittedWithTheirPosition(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 1))
		o := testOptions(t.TempDir())
		o.BackendBatchLimit, o.BackendBatchInterval = 1+int(seed)*4, time.Hour
		n := open(t, o)
		leases := map[int64]int64{}
		at := map[uint64]map[int64]int64{} // by position
		seen := 0
		for range 200 {
			r := leaseCommand(rng)
			note(leases, r, n.do(r).Err)
			at[n.Applied()] = maps.Clone(leases)
			if rng.IntN(20) == 0 {
				require.NoError(t, n.Sync())
			}
			if position, leases := committed(t, o); position > 0 {
				require.Equal(t, at[position], leases, "seed %d, position %d of %d", seed, position, n.Applied())
				seen++
			}
		}
		require.Greater(t, seen, 100)
		require.NoError(t, n.Close())
		position, leases := committed(t, o)
		require.Equal(t, n.Applied(), position)
		require.Equal(t, at[position], leases)
	}
}

// note changes leases, with the rest of their time, as a request does.
func note(leases map[int64]int64, r *pb.InternalRaftRequest, err error) {
	switch {
	case err != nil:
	case r.LeaseGrant != nil:
		leases[r.LeaseGrant.ID] = 0
	case r.LeaseRevoke != nil:
		delete(leases, r.LeaseRevoke.ID)
	case r.LeaseCheckpoint != nil:
		c := r.LeaseCheckpoint.Checkpoints[0]
		if _, ok := leases[c.ID]; ok {
			leases[c.ID] = c.Remaining_TTL
		}
	}
}

// leaseCommand changes leases, or keys between them.
func leaseCommand(rng *rand.Rand) *pb.InternalRaftRequest {
	id := int64(1 + rng.IntN(8))
	switch rng.IntN(6) {
	case 0:
		return revoke(id)
	case 1:
		return put(fmt.Sprint("k", id), "v")
	case 2:
		return putLease(fmt.Sprint("k", id), "v", id)
	case 3:
		return &pb.InternalRaftRequest{LeaseCheckpoint: &pb.LeaseCheckpointRequest{
			Checkpoints: []*pb.LeaseCheckpoint{{ID: id, Remaining_TTL: rng.Int64N(50)}}}}
	}
	return grant(id, 100)
}

// Grants and revocations alone are committed soon.
func TestLeasesAreCommittedSoon(t *testing.T) {
	n := openTemp(t)
	grants := []*pb.InternalRaftRequest{grant(1, 9), grant(2, 9), grant(3, 9)}
	for _, commands := range [][]*pb.InternalRaftRequest{grants, {revoke(1), revoke(2)}} {
		for _, r := range commands {
			n.must(r)
		}
		settleLeases(t, n)
	}
}

// settleLeases waits until nothing is held back.
func settleLeases(t *testing.T, n *node) {
	require.Eventually(t, func() bool {
		n.db.leases.mu.Lock()
		defer n.db.leases.mu.Unlock()
		return len(n.db.leases.held) == 0 && !n.db.leases.due
	}, 20*time.Second, time.Millisecond)
}

// Batches of grants and revocations commit as often as time requires, not for each lease.
func TestRevocationsCommitTogether(t *testing.T) {
	o := testOptions(t.TempDir())
	o.BackendBatchInterval = time.Hour
	n := open(t, o)
	defer n.Close()
	var commands [][]byte
	for id := range int64(100) {
		commands = append(commands, n.encode(grant(id+1, 100)))
	}
	for id := range int64(100) {
		commands = append(commands, n.encode(revoke(id+1)))
	}
	require.NoError(t, n.Sync())
	before := commits(t, o)
	n.raw(commands...)
	require.Equal(t, before, commits(t, o))
	require.NoError(t, n.Sync())
	require.Equal(t, before+1, commits(t, o))
}

// commits is the number of transactions of a database file.
func commits(t *testing.T, o Options) int {
	o.Dir = clone(t, o.Dir)
	db, err := bolt.Open(o.path(), 0o600, nil)
	require.NoError(t, err)
	defer db.Close()
	tx, err := db.Begin(false)
	require.NoError(t, err)
	defer tx.Rollback()
	return tx.ID()
}

// Grants that are held back when a copy of the database begins are in the copy.
func TestDefragmentWithLeasesHeldBack(t *testing.T) {
	o := testOptions(t.TempDir())
	o.BackendBatchInterval = time.Hour
	for _, alone := range []bool{false, true} {
		n, control := open(t, o), openTemp(t)
		for _, each := range []*node{n, control} {
			for id := range int64(20) {
				each.do(grant(id+1, 100))
			}
			each.do(revoke(3))
		}
		require.NoError(t, n.rewrite(t.Context(), alone))
		for _, each := range []*node{n, control} {
			each.must(revoke(4))
			each.must(grant(3, 100))
		}
		equalStores(t, control, n)
		require.NoError(t, n.Close())
		o = testOptions(t.TempDir())
	}
}

// A plain grant allocates for etcd's lease and for its record, its answer, and the lease's clock. The rest is bbolt's.
func TestAllocationsOfAGrant(t *testing.T) {
	t.Setenv("ETCD_VERIFY", "")
	n := openTemp(t)
	const batch, runs = 100, 20
	commands := make([]Command, batch)
	data := make([][]byte, batch*(runs+1))
	for i := range data {
		data[i] = n.encode(grant(1+int64(i)+int64(i%3)<<40, 600))
	}
	allocs := testing.AllocsPerRun(runs, func() {
		for i := range commands {
			commands[i] = Command{Position: n.next, Data: data[n.next-1]}
			n.next++
		}
		require.NoError(t, n.Apply(commands))
	})
	require.Less(t, allocs/batch, 17.5)
}

// commitsBetween is a lessor that calls a function before each lease of a checkpoint.
type commitsBetween struct {
	lease.Lessor
	before func()
}

// Checkpoint implements lease.Lessor.
func (l *commitsBetween) Checkpoint(id lease.LeaseID, remaining int64) error {
	l.before()
	return l.Lessor.Checkpoint(id, remaining)
}

// A checkpoint that a crash interrupts is applied again, whatever of it is committed: else a lease would have the time
// of an older one, though a renewal was answered because the newer one was in effect.
func TestInterruptedCheckpointsAreAppliedAgain(t *testing.T) {
	o := testOptions(t.TempDir())
	o.BackendBatchInterval = time.Hour
	n := open(t, o)
	defer n.Close()
	n.must(grant(7, 1000))
	n.must(grant(8, 1000))
	n.raw(n.Leases().Claim())
	n.raw(n.checkpoint(7, 300))
	var interrupted []string
	n.lessor.Lessor = &commitsBetween{n.lessor.Lessor, func() {
		n.db.be.ForceCommit()
		interrupted = append(interrupted, clone(t, o.Dir))
	}}
	of := []leaseclock.Shortening{{ID: 7, Left: 0}, {ID: 8, Left: 200}}
	command, err := n.lessor.checkpoint(n.lessor.clock.Shorten(7, 0).Number, of)
	require.NoError(t, err)
	require.NoError(t, n.raw(command)[0].Err)
	require.Len(t, interrupted, 2)
	for _, dir := range interrupted {
		crashed := open(t, testOptions(dir))
		require.NoError(t, crashed.Apply([]Command{{Position: n.Applied(), Data: command}}))
		require.NoError(t, crashed.Close())
		position, leases := committed(t, testOptions(dir))
		require.Equal(t, n.Applied(), position)
		require.Equal(t, map[int64]int64{7: 0, 8: 200}, leases)
	}
}
