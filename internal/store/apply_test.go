package store

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

func TestPutRangeDelete(t *testing.T) {
	n := openTemp(t)
	require.EqualValues(t, 1, n.Revision())

	resp := n.must(put("a", "1")).Resp.(*pb.PutResponse)
	require.EqualValues(t, 2, resp.Header.Revision)
	n.must(put("b", "2"))
	require.Equal(t, "1", n.get("a"))

	prev := n.must(&pb.InternalRaftRequest{Put: &pb.PutRequest{Key: []byte("a"), Value: []byte("3"), PrevKv: true}})
	require.Equal(t, "1", string(prev.Resp.(*pb.PutResponse).PrevKv.Value))

	old, err := n.Range(context.Background(), &pb.RangeRequest{Key: []byte("a"), Revision: 2})
	require.NoError(t, err)
	require.Equal(t, "1", string(old.Kvs[0].Value))
	_, err = n.Range(context.Background(), &pb.RangeRequest{Key: []byte("a"), Revision: 99})
	require.ErrorIs(t, err, mvcc.ErrFutureRev)

	deleted := n.must(del("a", "c")).Resp.(*pb.DeleteRangeResponse)
	require.EqualValues(t, 2, deleted.Deleted)
	require.Equal(t, "", n.get("a"))
	require.EqualValues(t, n.next-1, n.Applied())
	require.EqualValues(t, n.next-1, n.ConsistentIndex())
}

func TestTxn(t *testing.T) {
	n := openTemp(t)
	n.must(put("a", "1"))
	txn := &pb.TxnRequest{
		Compare: []*pb.Compare{{Key: []byte("a"), Target: pb.Compare_MOD, Result: pb.Compare_EQUAL,
			TargetUnion: &pb.Compare_ModRevision{ModRevision: 2}}},
		Success: []*pb.RequestOp{
			{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("a"), Value: []byte("2")}}},
			{Request: &pb.RequestOp_RequestTxn{RequestTxn: &pb.TxnRequest{Success: []*pb.RequestOp{
				{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte("a")}}}}}}},
		},
		Failure: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte("a")}}}},
	}
	first := n.must(&pb.InternalRaftRequest{Txn: txn}).Resp.(*pb.TxnResponse)
	require.True(t, first.Succeeded)
	inner := first.Responses[1].GetResponseTxn().Responses[0].GetResponseRange()
	require.Equal(t, "2", string(inner.Kvs[0].Value))
	second := n.must(&pb.InternalRaftRequest{Txn: txn}).Resp.(*pb.TxnResponse)
	require.False(t, second.Succeeded)
	require.EqualValues(t, 3, second.Responses[0].GetResponseRange().Kvs[0].ModRevision)

	require.False(t, IsReadOnly(txn))
	_, err := n.Txn(context.Background(), txn)
	require.ErrorIs(t, err, ErrBadCommand)
	readOnly := &pb.TxnRequest{Success: txn.Failure}
	resp, err := n.Txn(context.Background(), readOnly)
	require.NoError(t, err)
	require.Equal(t, "2", string(resp.Responses[0].GetResponseRange().Kvs[0].Value))
}

func TestCompaction(t *testing.T) {
	n := openTemp(t)
	for range 10 {
		n.must(put("a", "x"))
	}
	res := n.must(compact(8))
	require.NoError(t, n.FinishCompaction(context.Background(), res))
	require.EqualValues(t, 8, n.CompactRevision())
	_, err := n.Range(context.Background(), &pb.RangeRequest{Key: []byte("a"), Revision: 7})
	require.ErrorIs(t, err, mvcc.ErrCompacted)
	require.ErrorIs(t, n.do(compact(8)).Err, mvcc.ErrCompacted)
	require.ErrorIs(t, n.do(compact(99)).Err, mvcc.ErrFutureRev)
	_, err = n.HashKV(context.Background(), 7)
	require.ErrorIs(t, err, mvcc.ErrCompacted)
}

func TestPositionsWithGapsAndRepeats(t *testing.T) {
	n := openTemp(t)
	commands := []Command{
		{Position: 3, Data: n.encode(put("a", "1"))},
		{Position: 7}, // nothing
		{Position: 9, Data: n.encode(&pb.InternalRaftRequest{Range: &pb.RangeRequest{Key: []byte("a")}})},
	}
	require.NoError(t, n.Apply(commands))
	require.EqualValues(t, 9, n.Applied())
	require.EqualValues(t, 9, n.ConsistentIndex())
	require.NoError(t, n.WaitApplied(context.Background(), 9))

	again := []Command{{Position: 3, Data: commands[0].Data}, {Position: 10, Data: n.encode(put("b", "1"))}}
	require.NoError(t, n.Apply(again))
	require.Nil(t, again[0].Result)
	require.NotNil(t, again[1].Result)
	require.EqualValues(t, 3, n.Revision())

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, n.WaitApplied(ctx, 11), context.Canceled)
}

// TestMalformedCommands holds what would stop etcd's code, on every member, forever.
func TestMalformedCommands(t *testing.T) {
	n := openTemp(t)
	badRange := &pb.RangeRequest{Key: []byte("a"), SortTarget: 77}
	request := func(r *pb.InternalRaftRequest) []byte {
		data, err := proto.Marshal(r)
		require.NoError(t, err)
		return append([]byte{kindRequest}, data...)
	}
	for name, data := range map[string][]byte{
		"kind":      {'?', 1, 2, 3, 4, 5, 6, 7, 8, 9},
		"short":     {kindClaim, 1},
		"garbage":   {kindRequest, 0xff, 0xff, 0xff},
		"empty":     {kindRequest},
		"sort":      request(&pb.InternalRaftRequest{Range: badRange}),
		"order":     request(&pb.InternalRaftRequest{Range: &pb.RangeRequest{SortOrder: -5}}),
		"members":   request(&pb.InternalRaftRequest{ClusterMemberAttrSet: nil, DowngradeInfoSet: downgrade}),
		"version":   request(&pb.InternalRaftRequest{ClusterVersionSet: badVersion}),
		"password":  request(&pb.InternalRaftRequest{AuthUserAdd: &pb.AuthUserAddRequest{Name: "u", Password: "p"}}),
		"inner txn": request(&pb.InternalRaftRequest{Txn: writingTxn(badRange)}),
		"no lease":  append(guardedPrefix(77), request(revoke(1))[1:]...),
	} {
		t.Run(name, func(t *testing.T) {
			res := n.raw(data)[0]
			if name == "no lease" {
				require.ErrorIs(t, res.Err, ErrNotPrimary)
				return
			}
			require.ErrorIs(t, res.Err, ErrBadCommand)
		})
	}
	require.NoError(t, n.Err())
	n.must(put("a", "1"))

	_, err := n.Encode(context.Background(), &pb.InternalRaftRequest{Txn: writingTxn(badRange)})
	require.ErrorIs(t, err, ErrBadCommand)
	require.ErrorIs(t, n.do(putLease("a", "1", 5)).Err, lease.ErrLeaseNotFound)
}

func writingTxn(r *pb.RangeRequest) *pb.TxnRequest {
	return &pb.TxnRequest{Success: []*pb.RequestOp{
		{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("a")}}},
		{Request: &pb.RequestOp_RequestTxn{RequestTxn: &pb.TxnRequest{Failure: []*pb.RequestOp{
			{Request: &pb.RequestOp_RequestRange{RequestRange: r}}}}}},
	}}
}

func TestRangeStream(t *testing.T) {
	n := openTemp(t)
	for i := range 500 {
		n.must(put(string([]byte{'k', byte('a' + i/26), byte('a' + i%26)}), "0123456789"))
	}
	for name, c := range map[string]struct {
		r         *pb.RangeRequest
		keys, all int
		more      bool
	}{
		"all":   {&pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l")}, 500, 500, false},
		"limit": {&pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l"), Limit: 123}, 123, 500, true},
		"exact": {&pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l"), Limit: 500}, 500, 500, false},
		"none":  {&pb.RangeRequest{Key: []byte("x"), RangeEnd: []byte("y")}, 0, 0, false},
		"count": {&pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l"), CountOnly: true}, 0, 500, false},
	} {
		t.Run(name, func(t *testing.T) {
			var last *pb.RangeResponse
			keys := 0
			err := n.RangeStream(context.Background(), c.r, 1000, func(r *pb.RangeResponse) error {
				require.Nil(t, last.GetHeader())
				last = r
				keys += len(r.Kvs)
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, c.keys, keys)
			require.EqualValues(t, c.all, last.Count)
			require.Equal(t, c.more, last.More)
			require.EqualValues(t, n.Revision(), last.Header.Revision)
		})
	}
}

// All chunks of a stream show one revision, whatever number asks for the newest one.
func TestRangeStreamShowsOneRevision(t *testing.T) {
	for _, revision := range []int64{0, -1, math.MinInt64} {
		n := openTemp(t)
		for i := range 3 * firstChunk {
			n.must(put(fmt.Sprintf("k%03d", i), "old"))
		}
		all := &pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l"), Revision: revision}
		err := n.RangeStream(context.Background(), all, 100, func(r *pb.RangeResponse) error {
			for _, kv := range r.Kvs {
				require.Equal(t, "old", string(kv.Value), "revision %d", revision)
			}
			n.must(put(fmt.Sprintf("k%03d", 3*firstChunk-1), "new"))
			return nil
		})
		require.NoError(t, err)
	}
}
