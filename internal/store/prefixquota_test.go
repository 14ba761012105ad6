package store

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
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
	for _, u := range n.PrefixQuotas() {
		want, err := count(u.PrefixQuota, n.kv)
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
		require.NoError(t, other.Restore(snapshotReader(n)))
		require.Equal(t, want, other.PrefixQuotas())
		require.NoError(t, n.Close())
		n = open(t, o)
		require.Equal(t, want, n.PrefixQuotas())
		require.NoError(t, n.Close())
	}
}

// Keys are counted in pages, and a prefix may have no end.
func TestCountOfManyKeys(t *testing.T) {
	n := openTemp(t)
	var ops []*pb.RequestOp
	for i := range 2*countedAtOnce + 1 {
		ops = append(ops, putOp("\xff\xff"+string(rune('a'+i%26))+strings.Repeat("x", i/26), "v"))
	}
	n.must(&pb.InternalRaftRequest{Txn: &pb.TxnRequest{Success: ops}})
	u, err := count(PrefixQuota{Prefix: "\xff\xff"}, n.kv)
	require.NoError(t, err)
	require.EqualValues(t, len(ops), u.UsedKeys)
	all, err := n.kv.Range(context.Background(), []byte{0xff, 0xff}, []byte{}, mvcc.RangeOptions{})
	require.NoError(t, err)
	require.Len(t, all.KVs, len(ops))
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
