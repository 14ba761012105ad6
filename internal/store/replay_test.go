package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// randomLog makes commands of all kinds on few keys, so that they affect each other.
func randomLog(n *node, seed uint64, length int) [][]byte {
	r := rand.New(rand.NewPCG(seed, 1))
	key := func() string { return fmt.Sprintf("k%d", r.IntN(20)) }
	requests := []func() *pb.InternalRaftRequest{
		func() *pb.InternalRaftRequest { return put(key(), fmt.Sprint(r.IntN(1000))) },
		func() *pb.InternalRaftRequest { return put(key(), fmt.Sprint(r.IntN(1000))) },
		func() *pb.InternalRaftRequest { return putLease(key(), "leased", int64(1+r.IntN(5))) },
		func() *pb.InternalRaftRequest { return del(key(), "") },
		func() *pb.InternalRaftRequest { return del("k1", "k3") },
		func() *pb.InternalRaftRequest { return grant(int64(1+r.IntN(5)), int64(10+r.IntN(100))) },
		func() *pb.InternalRaftRequest { return revoke(int64(1 + r.IntN(5))) },
		func() *pb.InternalRaftRequest { return compact(int64(r.IntN(length))) },
		func() *pb.InternalRaftRequest {
			return &pb.InternalRaftRequest{Txn: writingTxn(&pb.RangeRequest{Key: []byte(key())})}
		},
		func() *pb.InternalRaftRequest {
			return &pb.InternalRaftRequest{LeaseCheckpoint: &pb.LeaseCheckpointRequest{
				Checkpoints: []*pb.LeaseCheckpoint{{ID: int64(1 + r.IntN(5)), Remaining_TTL: int64(r.IntN(10))}}}}
		},
		func() *pb.InternalRaftRequest {
			return &pb.InternalRaftRequest{Alarm: &pb.AlarmRequest{MemberID: 9, Alarm: pb.AlarmType_CORRUPT + 1,
				Action: pb.AlarmRequest_AlarmAction(r.IntN(3))}}
		},
		func() *pb.InternalRaftRequest {
			return &pb.InternalRaftRequest{AuthRoleAdd: &pb.AuthRoleAddRequest{Name: key()}}
		},
	}
	log := make([][]byte, length)
	for i := range log {
		switch r.IntN(16) {
		case 0:
			log[i] = claimCommand(r.Uint64N(3)+0xb0, 1)
		case 1:
			log[i] = nil
		case 2:
			log[i] = quotaOf([]string{"k", "k1", "k12", "k3", "other"}[r.IntN(5)], r.Int64N(300), r.Int64N(12))
		case 3:
			log[i] = countCommand("k")
		default:
			log[i] = n.encode(requests[r.IntN(len(requests))]())
		}
	}
	return log
}

// TestSameLogSameState feeds two members the same commands in batches of different sizes.
func TestSameLogSameState(t *testing.T) {
	for seed := range uint64(5) {
		one, two := openTemp(t), openTemp(t)
		one.quotas.step, two.quotas.step = 1, 1
		log := randomLog(one, seed, 400)
		one.raw(log...)
		for r := rand.New(rand.NewPCG(seed, 2)); len(log) > 0; {
			k := min(1+r.IntN(30), len(log))
			two.raw(log[:k]...)
			log = log[k:]
		}
		settle(t, one)
		settle(t, two)
		require.Equal(t, one.dump(), two.dump(), "seed %d", seed)
		require.Equal(t, hash(t, one), hash(t, two))
		require.Equal(t, one.PrefixQuotas(), two.PrefixQuotas())
	}
}

// settle waits until old revisions that are being removed are gone. The put after it keeps
// HashKV from answering with what it hashed while compacting, which covers more.
func settle(t *testing.T, n *node) {
	res := n.do(compact(n.Revision()))
	require.NoError(t, n.FinishCompaction(t.Context(), res))
	n.must(put("settled", "x"))
}

func hash(t *testing.T, n *node) uint32 {
	h, _, err := n.Hash()
	require.NoError(t, err)
	return h
}

// TestCrashAtEveryCut stops a member after each command, without Close, and starts it again on what its file holds at
// that moment: applying the log again from a random earlier position must lead to the state of a member that never
// stopped.
func TestCrashAtEveryCut(t *testing.T) {
	const length = 60
	for seed := range uint64(2) {
		whole := openTemp(t)
		log := randomLog(whole, seed, length)
		whole.raw(log...)
		settle(t, whole)

		o := testOptions(t.TempDir())
		o.BackendBatchLimit = 7            // so that the file is somewhere between two commits
		o.BackendBatchInterval = time.Hour // and at rest while it is copied
		runner := open(t, o)
		for cut := range length {
			runner.raw(log[cut])
			crashed := testOptions(clone(t, o.Dir))
			n := open(t, crashed)
			require.LessOrEqual(t, n.Applied(), uint64(cut+1))
			n.next = n.Applied() + 1
			from := n.Applied() / 2 // some that it knows already
			commands := make([]Command, 0, length)
			for i := int(from); i < length; i++ {
				commands = append(commands, Command{Position: uint64(i + 1), Data: log[i]})
			}
			require.NoError(t, n.Apply(commands))
			n.next = length + 1
			settle(t, n)
			require.Equal(t, whole.dump(), n.dump(), "seed %d cut %d", seed, cut)
			require.NoError(t, n.Close())
		}
		require.NoError(t, runner.Close())
	}
}

func TestReopen(t *testing.T) {
	o := testOptions(t.TempDir())
	n := open(t, o)
	n.raw(randomLog(n, 3, 200)...)
	settle(t, n)
	want := n.dump()
	require.NoError(t, n.Sync())
	require.NoError(t, n.Close())
	n = open(t, o)
	require.Equal(t, want, n.dump())
	require.NoError(t, n.Close())
}
