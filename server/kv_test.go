package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid"
)

// kvClient returns the bare gRPC service, which does not judge requests before sending.
func (f *fixture) kvClient() pb.KVClient { return pb.NewKVClient(f.client.ActiveConnection()) }

func put(key, value string) *pb.RequestOp {
	return &pb.RequestOp{
		Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key), Value: []byte(value)}}}
}

func del(key, end string) *pb.RequestOp {
	return &pb.RequestOp{
		Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(key),
			RangeEnd: []byte(end)}}}
}

func get(key string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte(key)}}}
}

func nest(then, otherwise []*pb.RequestOp) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: &pb.TxnRequest{Success: then, Failure: otherwise}}}
}

// requireStatus compares code and text, which is what clients do.
func requireStatus(t testing.TB, want, got error) {
	t.Helper()
	require.Equal(t, want.Error(), fmt.Sprint(got))
}

func TestRefusedRequests(t *testing.T) {
	f := start(t, func(c *Config) { c.MaxRequestBytes = 3 << 19 })
	kv, ctx := f.kvClient(), testContext(t)
	rangeOf := func(r *pb.RangeRequest) func() error {
		return func() error { _, err := kv.Range(ctx, r); return err }
	}
	putOf := func(r *pb.PutRequest) func() error {
		return func() error { _, err := kv.Put(ctx, r); return err }
	}
	txnOf := func(then ...*pb.RequestOp) func() error {
		return func() error { _, err := kv.Txn(ctx, &pb.TxnRequest{Success: then}); return err }
	}
	many := make([]*pb.RequestOp, 129)
	for i := range many {
		many[i] = put(fmt.Sprint(i), "")
	}
	deep := []*pb.RequestOp{put("x", "")}
	for range 200 {
		deep = []*pb.RequestOp{nest(deep, nil)}
	}
	key := []byte("k")
	for _, c := range []struct {
		name string
		call func() error
		want error
	}{
		{"get of no key", rangeOf(&pb.RangeRequest{}), rpctypes.ErrGRPCEmptyKey},
		{"unknown sort order", rangeOf(&pb.RangeRequest{Key: key, SortOrder: 9}), rpctypes.ErrGRPCInvalidSortOption},
		{"unknown sort target", rangeOf(&pb.RangeRequest{Key: key, SortTarget: 9}), rpctypes.ErrGRPCInvalidSortOption},
		{"revision in the future", rangeOf(&pb.RangeRequest{Key: key, Revision: 100}), rpctypes.ErrGRPCFutureRev},
		{"put of no key", putOf(&pb.PutRequest{Value: key}), rpctypes.ErrGRPCEmptyKey},
		{"ignored value given", putOf(&pb.PutRequest{Key: key, Value: key, IgnoreValue: true}),
			rpctypes.ErrGRPCValueProvided},
		{"ignored lease given", putOf(&pb.PutRequest{Key: key, Lease: 1, IgnoreLease: true}), rpctypes.ErrGRPCLeaseProvided},
		{"value of a missing key kept", putOf(&pb.PutRequest{Key: key, IgnoreValue: true}), rpctypes.ErrGRPCKeyNotFound},
		{"unknown lease", putOf(&pb.PutRequest{Key: key, Lease: 1}), rpctypes.ErrGRPCLeaseNotFound},
		{"too large", putOf(&pb.PutRequest{Key: key, Value: make([]byte, 3<<19)}), rpctypes.ErrGRPCRequestTooLarge},
		{"delete of no key", func() error { _, err := kv.DeleteRange(ctx, &pb.DeleteRangeRequest{}); return err },
			rpctypes.ErrGRPCEmptyKey},
		{"empty operation", txnOf(&pb.RequestOp{}), rpctypes.ErrGRPCKeyNotFound},
		{"empty key inside", txnOf(put("", "")), rpctypes.ErrGRPCEmptyKey},
		{"empty key compared", func() error {
			_, err := kv.Txn(ctx, &pb.TxnRequest{Compare: []*pb.Compare{{}}})
			return err
		}, rpctypes.ErrGRPCEmptyKey},
		{"too many operations", txnOf(many...), rpctypes.ErrGRPCTooManyOps},
		{"too deep", txnOf(deep...), rpctypes.ErrGRPCTooManyOps},
		{"same key twice", txnOf(put("a", ""), put("a", "")), rpctypes.ErrGRPCDuplicateKey},
		{"put and delete", txnOf(put("b", ""), del("a", "c")), rpctypes.ErrGRPCDuplicateKey},
		{"put inside, delete outside", txnOf(nest([]*pb.RequestOp{put("b", "")}, nil), del("a", "c")),
			rpctypes.ErrGRPCDuplicateKey},
		{"put in two nested ones", txnOf(nest([]*pb.RequestOp{put("b", "")}, nil), nest(nil, []*pb.RequestOp{put("b", "")})),
			rpctypes.ErrGRPCDuplicateKey},
		{"delete inside, put outside", txnOf(nest(nil, []*pb.RequestOp{del("a", "c")}), put("b", "")),
			rpctypes.ErrGRPCDuplicateKey},
		{"compaction of the future",
			func() error {
				_, err := kv.Compact(ctx, &pb.CompactionRequest{Revision: 100})
				return err
			}, rpctypes.ErrGRPCFutureRev},
	} {
		t.Run(c.name, func(t *testing.T) {
			requireStatus(t, c.want, c.call())
		})
	}
	require.EqualValues(t, 1, f.store.Revision(), "a refused request changed something")
}

// The two branches of a transaction exclude each other, and delete ranges may overlap.
func TestAllowedOverlaps(t *testing.T) {
	for name, then := range map[string][]*pb.RequestOp{
		"both branches put":  {nest([]*pb.RequestOp{put("a", "")}, []*pb.RequestOp{put("a", "")})},
		"deletes overlap":    {del("a", "c"), del("b", "d")},
		"put beside a range": {del("a", "c"), put("c", "")},
		"read what is put":   {put("a", ""), get("a")},
		"etcd takes the range up to the end of all keys for an empty one": {del("a", "\x00"), put("b", "")},
	} {
		t.Run(name, func(t *testing.T) { require.NoError(t, checkTxn(&pb.TxnRequest{Success: then}, 128)) })
	}
}

func TestKVSemantics(t *testing.T) {
	f := start(t)
	c, ctx := f.client, testContext(t)
	for i := range 5 {
		_, err := c.Put(ctx, fmt.Sprintf("key%d", i), fmt.Sprint(i))
		require.NoError(t, err)
	}
	old, err := c.Put(ctx, "key0", "zero", clientv3.WithPrevKV())
	require.NoError(t, err)
	require.Equal(t, "0", string(old.PrevKv.Value))

	page, err := c.Get(ctx, "key", clientv3.WithPrefix(), clientv3.WithLimit(2), clientv3.WithRev(4))
	require.NoError(t, err)
	require.Len(t, page.Kvs, 2)
	require.True(t, page.More)
	require.EqualValues(t, 3, page.Count, "the count of the whole range at the pinned revision")

	sorted, err := c.Get(ctx, "key", clientv3.WithPrefix(),
		clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortDescend))
	require.NoError(t, err)
	require.Equal(t, "key0", string(sorted.Kvs[0].Key))
	count, err := c.Get(ctx, "key", clientv3.WithPrefix(), clientv3.WithCountOnly())
	require.NoError(t, err)
	require.EqualValues(t, 5, count.Count)
	require.Empty(t, count.Kvs)
	keys, err := c.Get(ctx, "key1", clientv3.WithKeysOnly(), clientv3.WithSerializable())
	require.NoError(t, err)
	require.Empty(t, keys.Kvs[0].Value)
	filtered, err := c.Get(ctx, "", clientv3.WithFromKey(), clientv3.WithMinModRev(6))
	require.NoError(t, err)
	require.Len(t, filtered.Kvs, 2)

	deleted, err := c.Delete(ctx, "key1", clientv3.WithRange("key3"), clientv3.WithPrevKV())
	require.NoError(t, err)
	require.EqualValues(t, 2, deleted.Deleted)
	require.Len(t, deleted.PrevKvs, 2)
	none, err := c.Delete(ctx, "nothing")
	require.NoError(t, err)
	require.Zero(t, none.Deleted)
	require.Equal(t, deleted.Header.Revision, none.Header.Revision)
}

func TestTxn(t *testing.T) {
	f := start(t)
	c, ctx := f.client, testContext(t)
	create := func(value string) *clientv3.TxnResponse {
		r, err := c.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision("k"), "=", 0)).
			Then(clientv3.OpPut("k", value)).Else(clientv3.OpGet("k")).Commit()
		require.NoError(t, err)
		return r
	}
	require.True(t, create("first").Succeeded)
	second := create("second")
	require.False(t, second.Succeeded)
	require.Equal(t, "first", string(second.Responses[0].GetResponseRange().Kvs[0].Value))

	nested, err := c.Txn(ctx).Then(clientv3.OpTxn(
		[]clientv3.Cmp{clientv3.Compare(clientv3.Value("k"), "=", "first")},
		[]clientv3.Op{clientv3.OpPut("inner", "1"), clientv3.OpGet("inner")}, nil)).Commit()
	require.NoError(t, err)
	inner := nested.Responses[0].GetResponseTxn()
	require.True(t, inner.Succeeded)
	require.Equal(t, "1", string(inner.Responses[1].GetResponseRange().Kvs[0].Value))

	require.Eventually(t, func() bool {
		position := f.fake.Status().Applied
		read, err := c.Txn(ctx).Then(clientv3.OpGet("k", clientv3.WithSerializable()),
			clientv3.OpGet("inner", clientv3.WithSerializable())).Commit()
		require.NoError(t, err)
		require.Len(t, read.Responses, 2)
		return position == f.fake.Status().Applied // the new leader's claim of the leases may come between, once
	}, 10*time.Second, time.Millisecond, "each transaction that only reads went through the log")
}

func TestCompaction(t *testing.T) {
	f := start(t)
	c, ctx := f.client, testContext(t)
	for i := range 10 {
		_, err := c.Put(ctx, "k", fmt.Sprint(i))
		require.NoError(t, err)
	}
	_, err := c.Compact(ctx, 8, clientv3.WithCompactPhysical())
	require.NoError(t, err)
	_, err = c.Get(ctx, "k", clientv3.WithRev(7))
	require.ErrorIs(t, err, rpctypes.ErrCompacted)
	_, err = c.Compact(ctx, 8)
	require.ErrorIs(t, err, rpctypes.ErrCompacted)
	got, err := c.Get(ctx, "k", clientv3.WithRev(9))
	require.NoError(t, err)
	require.Equal(t, "7", string(got.Kvs[0].Value))
}

func TestAutoCompaction(t *testing.T) {
	for _, wrong := range []AutoCompaction{{Period: -1}, {Revisions: -1}, {Period: 1, Revisions: 1}} {
		require.Error(t, wrong.check())
	}
	f := start(t, func(c *Config) { c.AutoCompaction.Period = time.Hour })
	ctx := testContext(t)
	for range 5 {
		_, err := f.client.Put(ctx, "k", "v")
		require.NoError(t, err)
	}
	c := compactable{f.Server}
	require.EqualValues(t, 6, c.Rev())
	f.enableAuth(t, ctx)
	_, err := c.Compact(ctx, &pb.CompactionRequest{Revision: 4})
	require.NoError(t, err, "the server needs no user")
	require.EqualValues(t, 4, f.store.CompactRevision())
}

func TestRangeStream(t *testing.T) {
	f := start(t)
	c, ctx := f.client, testContext(t)
	value := strings.Repeat("v", 1000)
	const keys = 300
	for i := range keys {
		_, err := c.Put(ctx, fmt.Sprintf("s%04d", i), value)
		require.NoError(t, err)
	}
	stream, err := f.kvClient().RangeStream(ctx, &pb.RangeRequest{Key: []byte("s"), RangeEnd: []byte("t")})
	require.NoError(t, err)
	var last *pb.RangeResponse
	got, chunks := 0, 0
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		chunks++
		for _, kv := range chunk.RangeResponse.Kvs {
			require.Equal(t, fmt.Sprintf("s%04d", got), string(kv.Key))
			got++
		}
		last = chunk.RangeResponse
	}
	require.Equal(t, keys, got)
	require.Greater(t, chunks, 1)
	require.EqualValues(t, keys, last.Count)
	require.EqualValues(t, 0x77, last.Header.ClusterId)

	refused, err := f.kvClient().RangeStream(ctx, &pb.RangeRequest{Key: []byte("s"), SortOrder: pb.RangeRequest_DESCEND})
	require.NoError(t, err)
	_, err = refused.Recv()
	require.Equal(t, codes.Unimplemented, status.Code(err))
}

func TestLogErrors(t *testing.T) {
	f := start(t, func(c *Config) { c.RequestTimeout = 1e8 })
	ctx := testContext(t)
	for _, c := range []struct{ err, want error }{
		{braid.ErrOverloaded, rpctypes.ErrGRPCRequestTooManyRequests},
		{braid.ErrNoLeader, rpctypes.ErrGRPCNoLeader},
		{braid.ErrTooLarge, rpctypes.ErrGRPCRequestTooLarge},
		{braid.ErrStopped, rpctypes.ErrGRPCStopped},
		{fmt.Errorf("%w: %w", braid.ErrMaybeCommitted, context.DeadlineExceeded), rpctypes.ErrGRPCTimeout},
	} {
		f.fake.set(func(l *fakeLog) { l.refuse = c.err })
		_, err := f.kvClient().Put(ctx, &pb.PutRequest{Key: []byte("k")})
		requireStatus(t, c.want, err)
	}
	f.fake.set(func(l *fakeLog) { l.refuse, l.stuck = nil, true })
	_, err := f.kvClient().Put(ctx, &pb.PutRequest{Key: []byte("k")})
	requireStatus(t, rpctypes.ErrGRPCTimeout, err)
	f.fake.set(func(l *fakeLog) { l.stuck, l.barrier = false, braid.ErrReadTimeout })
	_, err = f.kvClient().Range(ctx, &pb.RangeRequest{Key: []byte("k")})
	requireStatus(t, rpctypes.ErrGRPCTimeout, err)
	_, err = f.kvClient().Range(ctx, &pb.RangeRequest{Key: []byte("k"), Serializable: true})
	require.NoError(t, err)
	f.fake.set(func(l *fakeLog) { l.barrier = nil })
}

func TestConcurrentReads(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	const readers, reads = 50, 20
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			for range reads {
				_, err := f.client.Get(ctx, "k")
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	f.fake.mu.Lock()
	defer f.fake.mu.Unlock()
	require.Positive(t, f.fake.barriers)
	require.LessOrEqual(t, f.fake.barriers, readers*reads)
}

func TestLargestRequest(t *testing.T) {
	f := start(t, func(c *Config) { c.MaxRequestBytes = 1 << 16 })
	ctx := testContext(t)
	value := bytes.Repeat([]byte("x"), 1<<16-100)
	_, err := f.kvClient().Put(ctx, &pb.PutRequest{Key: []byte("k"), Value: value})
	require.NoError(t, err)
	_, err = f.kvClient().Put(ctx, &pb.PutRequest{Key: []byte("k"), Value: append(value, value...)})
	requireStatus(t, rpctypes.ErrGRPCRequestTooLarge, err)
	_, err = f.kvClient().Put(ctx, &pb.PutRequest{Key: []byte("k"), Value: make([]byte, 1<<21)})
	require.Equal(t, codes.ResourceExhausted, status.Code(err), "beyond what gRPC takes: %v", err)
	require.Less(t, len(status.Convert(err).Message()), math.MaxUint8)
}

// bushy is a transaction of nested ones, levels deep, each with so many operations.
func bushy(levels, width int, key *int) *pb.TxnRequest {
	r := &pb.TxnRequest{}
	for range width {
		if *key++; levels == 1 {
			r.Success = append(r.Success, put(fmt.Sprint(*key), ""))
		} else {
			r.Success = append(r.Success,
				&pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: bushy(levels-1, width, key)}})
		}
	}
	return r
}

// Nesting does not get around the limit of operations: what has too many is refused before it is looked at.
func TestNestedTransactionsAreBounded(t *testing.T) {
	keys := 0
	require.NoError(t, checkTxn(bushy(13, 2, &keys), 128), "%d operations", keys)
	require.LessOrEqual(t, keys, 128*txnOpsInAll)
	require.Equal(t, rpctypes.ErrGRPCTooManyOps, checkTxn(bushy(14, 2, &keys), 128))
	require.NoError(t, checkTxn(bushy(txnLevels, 1, &keys), 128))
	require.Equal(t, rpctypes.ErrGRPCTooManyOps, checkTxn(bushy(txnLevels+1, 1, &keys), 128))
	compares := &pb.TxnRequest{}
	for range 128 {
		compares.Compare = append(compares.Compare, &pb.Compare{Key: []byte("k")})
	}
	wide := &pb.TxnRequest{}
	for range 2 {
		wide.Failure = append(wide.Failure, &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: compares}})
	}
	require.NoError(t, (&txnBudget{ops: 258}).checkTxn(wide, 256, 1))
	require.Equal(t, rpctypes.ErrGRPCTooManyOps, (&txnBudget{ops: 257}).checkTxn(wide, 256, 1), "comparisons count")

	// Looked at: what the bound allows and no more.
	bound := &txnBudget{ops: 100}
	require.Equal(t, rpctypes.ErrGRPCTooManyOps, bound.checkTxn(bushy(14, 2, &keys), 128, 1))
	require.GreaterOrEqual(t, bound.ops, -2)
}

// A client that has not logged in gets that error, and not what is wrong with a transaction.
func TestTransactionsOfStrangersAreNotLookedAt(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	f.enableAuth(t, ctx)
	keys := 0
	_, err := f.kvClient().Txn(ctx, bushy(14, 2, &keys))
	requireStatus(t, rpctypes.ErrGRPCUserEmpty, err)
}
