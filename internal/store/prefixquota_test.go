package store

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// quotaOf is the command that sets a quota.
func quotaOf(prefix string, bytes, keys int64) []byte {
	data, err := QuotaCommand(PrefixQuota{prefix, bytes, keys})
	if err != nil {
		panic(err)
	}
	return data
}

// requireCounted demands that what is used of each quota is what the keys say.
func (n *node) requireCounted() {
	n.t.Helper()
	all, _ := n.quotas.now()
	for _, u := range all {
		want, err := recount(recordedQuota{u.PrefixQuota, u.from}, n.kv, n.database().refs)
		require.NoError(n.t, err)
		require.Equal(n.t, want, u)
	}
}

func (n *node) requireUsed(used ...int64) {
	n.t.Helper()
	var got []int64
	for _, u := range n.PrefixQuotas() {
		got = append(got, u.UsedBytes, u.UsedKeys)
	}
	require.Equal(n.t, used, got)
	n.requireCounted()
}

func putOp(key, value string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: put(key, value).Put}}
}

func TestQuotaOfAPrefix(t *testing.T) {
	n := openTemp(t)
	n.must(put("a/1", "12345"))
	require.NoError(t, n.raw(quotaOf("a/", 16, 0), quotaOf("b/", 0, 2))[1].Err)
	n.requireUsed(8, 1, 0, 0)
	refused := func(prefix string, r *pb.InternalRaftRequest) {
		t.Helper()
		revision := n.Revision()
		var quota *PrefixQuotaError
		require.ErrorAs(t, n.CheckQuota(r), &quota, "before it is ordered")
		require.ErrorAs(t, n.do(r).Err, &quota)
		require.Equal(t, prefix, quota.Prefix)
		require.Equal(t, revision, n.Revision())
	}
	refused("a/", put("a/2", "123456"))
	_, err := n.EncodeAccepted(put("a/2", "123456").Put)
	require.ErrorAs(t, err, new(*NotAcceptedError))
	n.must(put("a/2", "12345"))
	n.requireUsed(16, 2, 0, 0)
	n.must(put("c", "123456789"))
	n.must(put("a/1", "54321"))
	n.must(put("a/1", "1"))
	refused("a/", put("a/2", strings.Repeat("x", 10)))
	n.must(del("a/1", ""))
	n.requireUsed(8, 1, 0, 0)

	both := &pb.TxnRequest{Success: []*pb.RequestOp{putOp("b/1", "v"), putOp("b/2", "v")}}
	three := &pb.TxnRequest{Failure: []*pb.RequestOp{putOp("b/1", ""), putOp("b/2", ""),
		{Request: &pb.RequestOp_RequestTxn{RequestTxn: &pb.TxnRequest{Success: []*pb.RequestOp{putOp("b/3", "")}}}}}}
	refused("b/", &pb.InternalRaftRequest{Txn: three})
	n.must(&pb.InternalRaftRequest{Txn: both})
	n.must(&pb.InternalRaftRequest{Txn: both})
	n.requireUsed(8, 1, 8, 2)
	refused("b/", put("b/3", "v"))
	n.must(grant(7, 100))
	n.must(putLease("b/1", "v", 7))
	n.must(revoke(7))
	n.requireUsed(8, 1, 4, 1)

	require.NoError(t, n.raw(quotaOf("a/", 4, 0))[0].Err)
	refused("a/", put("a/2", "123456"))
	n.must(put("a/2", "1234"))
	require.NoError(t, n.raw(quotaOf("a/", 0, 0))[0].Err, "it is removed")
	n.must(put("a/2", strings.Repeat("x", 100)))
	n.requireUsed(4, 1)
	for _, bad := range []string{"", "{", `{"prefix":""}`, `{"prefix":"x","bytes":-1}`, `{"prefix":"x","keys":"1"}`} {
		require.ErrorIs(t, n.raw(append([]byte{kindQuota}, bad...))[0].Err, ErrBadCommand, bad)
	}
	for i := range mostPrefixQuotas {
		err := n.raw(quotaOf(strings.Repeat("x", i+1), 1, 1))[0].Err
		require.Equal(t, i == mostPrefixQuotas-1, err != nil)
	}
}

// TestUsageFollowsTheKeys: usage equals a recount of the keys, after each command, on a member that starts again, and
// on one that installs a snapshot.
func TestUsageFollowsTheKeys(t *testing.T) {
	for seed := range uint64(4) {
		o := testOptions(t.TempDir())
		n := open(t, o)
		some := 0
		for _, data := range randomLog(n, seed, 300) {
			n.raw(data)
			n.requireCounted()
			some += len(n.PrefixQuotas())
		}
		require.Positive(t, some)
		n.raw(quotaOf("k", 1000, 0))
		want := n.PrefixQuotas()
		other := openTemp(t)
		require.True(t, n.HadPrefixQuotas() && !other.HadPrefixQuotas())
		require.NoError(t, other.Restore(snapshotReader(n)))
		require.Equal(t, want, other.PrefixQuotas())
		require.NoError(t, n.Close())
		n = open(t, o)
		require.Equal(t, want, n.PrefixQuotas())
		for _, u := range want {
			n.raw(quotaOf(u.Prefix, 0, 0))
		}
		require.NoError(t, n.Close())
		n = open(t, o)
		require.True(t, n.HadPrefixQuotas(), "the log may have commands that set some")
		require.NoError(t, n.Close())
	}
}

// Keys are counted in steps, which are part of the order: the usage at each place is the same on a member that starts
// again, and on one that installs a snapshot, and the bounds apply to the usage so far.
func TestKeysAreCountedInSteps(t *testing.T) {
	const keys, step, prefix = 100, 7, "q/"
	o := testOptions(t.TempDir())
	n, other := open(t, o), openTemp(t)
	var ops []*pb.RequestOp
	for i := range keys {
		ops = append(ops, putOp(fmt.Sprintf(prefix+"%03d", 2*i), "v"))
	}
	n.must(&pb.InternalRaftRequest{Txn: &pb.TxnRequest{Success: ops}})
	n.quotas.step = step
	require.NoError(t, n.raw(quotaOf(prefix, 0, keys-20))[0].Err)
	steps := 1
	for ; n.PrefixQuotas()[0].Counting; steps++ {
		used := n.PrefixQuotas()[0].UsedKeys
		require.NoError(t, other.Restore(snapshotReader(n)))
		other.next = n.next
		other.quotas.step = step
		require.NoError(t, n.Sync())
		require.NoError(t, n.Close())
		n = open(t, o)
		n.quotas.step = step
		require.Equal(t, used, n.PrefixQuotas()[0].UsedKeys)
		require.Equal(t, n.PrefixQuotas(), other.PrefixQuotas())
		for _, m := range []*node{n, other} {
			key := fmt.Sprintf(prefix+"%03d", 4*used-keys) // counted, or to be counted
			m.must(del(key, ""))
			require.Equal(t, used >= keys-20, m.do(put(key, "w")).Err != nil)
			require.NoError(t, m.raw(countCommand(prefix))[0].Err)
			m.requireCounted()
		}
		require.Equal(t, n.PrefixQuotas(), other.PrefixQuotas())
	}
	require.InDelta(t, keys/step, steps, 2)
	n.requireCounted()
	require.NoError(t, n.raw(countCommand(prefix), countCommand("none"))[0].Err, "nothing is left")
	require.NoError(t, n.Close())
}

// A prefix may have no end.
func TestRecountUpToTheEnd(t *testing.T) {
	n := openTemp(t)
	for i := range 2*walkedAtOnce + 1 {
		n.must(put(fmt.Sprint("\xff\xff", i), "v"))
	}
	u, err := recount(recordedQuota{PrefixQuota: PrefixQuota{Prefix: "\xff\xff"}}, n.kv, n.database().refs)
	require.NoError(t, err)
	require.EqualValues(t, 2*walkedAtOnce+1, u.UsedKeys)
}

// The primary lessor orders the steps of counting, and AwaitCounted returns after the last one.
func TestThePrimaryHasKeysCounted(t *testing.T) {
	n := openTemp(t)
	n.quotas.step = 1
	for i := range 3 {
		n.must(put(fmt.Sprint("a", i), "v"))
	}
	n.raw(quotaOf("a", 0, 2))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, n.AwaitCounted(ctx, "a"), context.Canceled)
	n.raw(n.Leases().Claim())
	counted := make(chan error, 1)
	go func() { counted <- n.AwaitCounted(t.Context(), "a") }()
	for n.PrefixQuotas()[0].Counting {
		n.raw(within(t, n.Wanted()))
	}
	require.NoError(t, within(t, counted))
	n.requireUsed(9, 3)
	require.NoError(t, n.AwaitCounted(t.Context(), "none"))
}

// A put that may be answered before it is applied is decided when it is applied, as any other.
func TestNoPutBelowAQuotaIsAccepted(t *testing.T) {
	n := openTemp(t)
	before := n.accepts("a1", "v")
	require.True(t, n.AcceptsEarly([]byte("a1")))
	n.raw(quotaOf("a", 0, 1))
	n.applies(before)
	_, err := n.EncodeAccepted(put("a2", "v").Put)
	require.ErrorAs(t, err, new(*NotAcceptedError))
	require.False(t, n.AcceptsEarly([]byte("a1")))
	require.True(t, n.AcceptsEarly([]byte("b")))
	n.accepts("b", "v")
	n.requireUsed(3, 1)
}

// A large value counts whole, wherever its bytes are.
func TestLargeValuesCount(t *testing.T) {
	n := openLarge(t)
	n.raw(quotaOf("a", 1<<20, 0))
	n.put("a", strings.Repeat("x", 500_000))
	require.EqualValues(t, 500_001, n.PrefixQuotas()[0].UsedBytes)
	_, err := n.try(put("ab", strings.Repeat("x", 700_000)))
	require.ErrorAs(t, err, new(*PrefixQuotaError))
	n.put("a", "small")
	n.put("ab", strings.Repeat("x", 700_000))
	require.EqualValues(t, 700_008, n.PrefixQuotas()[0].UsedBytes)
	n.requireCounted()
}

// A value that only looks like a record counts with its own size, also if a member without bodies ordered it.
func TestForgedRecordsCountAsTheyAre(t *testing.T) {
	forged := string(record{size: 1 << 40}.encode())
	n := openLarge(t)
	n.raw(quotaOf("a", 1000, 0))
	require.NoError(t, n.CheckQuota(put("a", forged)))
	_, err := n.try(put("a", forged)) // in a body
	require.NoError(t, err)
	plain := func(r *pb.InternalRaftRequest) { // as a member without bodies orders it
		t.Helper()
		command, err := encode([]byte{kindRequest}, r)
		require.NoError(t, err)
		require.NoError(t, n.raw(command)[0].Err)
	}
	plain(put("ab", forged))
	plain(&pb.InternalRaftRequest{Txn: &pb.TxnRequest{Success: []*pb.RequestOp{putOp("abc", forged)}}})
	n.requireUsed(int64(6+3*len(forged)), 3)
	n.must(del("a", "b"))
	n.requireUsed(0, 0)

	n.raw(quotaOf("a", 1<<20, 0))
	n.put("a", strings.Repeat("x", 500_000))
	n.must(&pb.InternalRaftRequest{Put: &pb.PutRequest{Key: []byte("a"), IgnoreValue: true}})
	n.requireUsed(500_001, 1)
	genuine := string(recordOf([]byte(strings.Repeat("x", 500_000))).encode())
	plain(put("ab", genuine)) // of another key's value, which it does not have
	n.requireUsed(int64(500_003+len(genuine)), 2)
}
