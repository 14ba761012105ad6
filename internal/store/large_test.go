package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// threshold of large values in tests.
const threshold = 2000

// fakeBodies keeps bodies in memory.
type fakeBodies struct {
	mu       sync.Mutex
	bodies   map[BodyRef][]byte
	released []BodyRef
	asked    int
	// fail, if set, is the error of fetching a body.
	fail error
}

var errAway = errors.New("fewer than k good fragments")

func newFakeBodies() *fakeBodies { return &fakeBodies{bodies: map[BodyRef][]byte{}} }

func (f *fakeBodies) Body(_ context.Context, ref BodyRef) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	b, ok := f.bodies[ref]
	if f.fail != nil || !ok {
		return nil, errors.Join(f.fail, errAway)
	}
	return b, nil
}

func (f *fakeBodies) Release(ref BodyRef) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.released = append(f.released, ref)
	delete(f.bodies, ref)
}

func (f *fakeBodies) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeBodies) count() (held, released int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.bodies), len(f.released)
}

// keep stores a body as of a position.
func (f *fakeBodies) keep(position uint64, body []byte) *BodyRef {
	if body == nil {
		return nil
	}
	ref := BodyRef{Instance: 1, Index: position, Term: 1, K: 1, Size: uint32(len(body)), Digest: crc32.ChecksumIEEE(body)}
	f.set(func() { f.bodies[ref] = body })
	return &ref
}

// large is a store with bodies, and the commands applied to it.
type large struct {
	*node
	bodies *fakeBodies
	log    []Command
	// origin is the snapshot that it began with, if any.
	origin string
}

func largeOptions(dir string, b *fakeBodies) Options {
	o := testOptions(dir)
	o.LargeValueBytes, o.ReleaseGrace = threshold, time.Hour
	if b != nil {
		o.Bodies = b
	}
	return o
}

func openLarge(t testing.TB, change ...func(*Options)) *large {
	b := newFakeBodies()
	o := largeOptions(t.TempDir(), b)
	for _, c := range change {
		c(&o)
	}
	n := &large{node: open(t, o), bodies: b}
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	return n
}

// order applies an encoded request.
func (n *large) order(e Encoded) *Result {
	n.t.Helper()
	c := Command{Position: n.next, Data: e.Command, Body: n.bodies.keep(n.next, e.Body)}
	n.next++
	n.log = append(n.log, c)
	commands := []Command{c}
	require.NoError(n.t, n.Apply(commands))
	return commands[0].Result.(*Result)
}

// try carries out a request: it is encoded, ordered, answered, and encoded again if it must be.
func (n *large) try(r *pb.InternalRaftRequest) (proto.Message, error) {
	n.t.Helper()
	ctx := context.Background()
	e, err := n.Encode(ctx, r)
	require.NoError(n.t, err)
	result := n.order(e)
	if errors.Is(result.Err, ErrUnresolved) {
		e, err = n.EncodeResolved(ctx, r)
		if err != nil {
			return nil, err
		}
		result = n.order(e)
	}
	if result.Err != nil {
		return nil, result.Err
	}
	return result.Resp, n.Answer(ctx, &e, result.Resp)
}

func (n *large) must(r *pb.InternalRaftRequest) proto.Message {
	n.t.Helper()
	resp, err := n.try(r)
	require.NoError(n.t, err)
	return resp
}

func (n *large) put(key, value string) { n.t.Helper(); n.must(put(key, value)) }

func (n *large) compact(rev int64) {
	n.t.Helper()
	e, err := n.Encode(context.Background(), compact(rev))
	require.NoError(n.t, err)
	result := n.order(e)
	require.NoError(n.t, result.Err)
	require.NoError(n.t, n.FinishCompaction(context.Background(), result))
}

// big is a large value that begins with a letter.
func big(letter byte, size int) string {
	return string(letter) + string(bytes.Repeat([]byte{letter, '.'}, size))[:size-1]
}

// stored returns what the database itself holds for a key.
func (n *large) stored(key string) []byte {
	n.t.Helper()
	r, err := n.KV().Range(context.Background(), []byte(key), nil, mvcc.RangeOptions{})
	require.NoError(n.t, err)
	require.Len(n.t, r.KVs, 1)
	return r.KVs[0].Value
}

func TestLargePutAndGet(t *testing.T) {
	n := openLarge(t)
	values := map[string]string{
		"small": "x", "below": big('a', threshold-1), "at": big('b', threshold), "large": big('c', 1<<20),
		"empty": "", "magic": recordMagic, "like a record": string(recordOf([]byte("x")).encode()),
	}
	for key, value := range values {
		n.put(key, value)
	}
	require.EqualValues(t, "x", n.stored("small"))
	require.Len(t, n.stored("below"), threshold-1)
	for _, key := range []string{"at", "large", "magic", "like a record"} {
		require.Len(t, n.stored(key), recordSize, key)
	}
	for key, value := range values {
		require.Equal(t, value, n.get(key))
	}
	held, _ := n.bodies.count()
	require.Equal(t, 4, held)
	require.EqualValues(t, threshold+1<<20+len(recordMagic)+recordSize, n.BodyBytes())

	// A single value is not copied on its way.
	value := []byte(big('d', 4*threshold))
	e, err := n.Encode(context.Background(), &pb.InternalRaftRequest{Put: &pb.PutRequest{Key: []byte("k"), Value: value}})
	require.NoError(t, err)
	require.Same(t, &value[0], &e.Body[0])
	require.Less(t, len(e.Command), 200)
}

func TestLargeWithoutBodiesStaysInTheDatabase(t *testing.T) {
	n := openTemp(t)
	value := big('a', 100_000)
	like := string(recordOf([]byte(value)).encode())
	n.must(put("a", value))
	n.must(put("b", like))
	n.must(&pb.InternalRaftRequest{Put: &pb.PutRequest{Key: []byte("b"), IgnoreValue: true, Lease: 0}})
	require.Equal(t, value, n.get("a"))
	require.Equal(t, like, n.get("b"))
}

func TestLargePreviousValues(t *testing.T) {
	n := openLarge(t)
	a, b := big('a', 5000), big('b', 6000)
	n.put("k", a)
	put2 := n.must(&pb.InternalRaftRequest{Put: &pb.PutRequest{Key: []byte("k"), Value: []byte(b), PrevKv: true}})
	require.Equal(t, a, string(put2.(*pb.PutResponse).PrevKv.Value))
	gone := n.must(&pb.InternalRaftRequest{DeleteRange: &pb.DeleteRangeRequest{Key: []byte("k"), PrevKv: true}})
	require.Equal(t, b, string(gone.(*pb.DeleteRangeResponse).PrevKvs[0].Value))
	old, err := n.Range(context.Background(), &pb.RangeRequest{Key: []byte("k"), Revision: 2})
	require.NoError(t, err)
	require.Equal(t, a, string(old.Kvs[0].Value))
}

// TestIgnoreValueKeepsTheBody puts a large value again without sending it: both revisions use the body, which goes
// with the last of them.
func TestIgnoreValueKeepsTheBody(t *testing.T) {
	n := openLarge(t)
	a := big('a', 5000)
	n.put("k", a)
	n.must(grant(7, 1000))
	keep := &pb.InternalRaftRequest{Put: &pb.PutRequest{Key: []byte("k"), IgnoreValue: true, Lease: 7, PrevKv: true}}
	require.Equal(t, a, string(n.must(keep).(*pb.PutResponse).PrevKv.Value))
	require.Equal(t, a, n.get("k"))
	n.compact(n.Revision())
	require.NoError(t, n.releaser.release(time.Now().Add(time.Hour)))
	held, released := n.bodies.count()
	require.Equal(t, []int{1, 0}, []int{held, released})
	require.Equal(t, a, n.get("k"))
	require.ErrorIs(t, n.order(Encoded{Command: n.encode(putLease("other", "", 9))}).Err, lease.ErrLeaseNotFound)

	n.must(del("k", ""))
	n.compact(n.Revision())
	require.NoError(t, n.releaser.release(time.Now().Add(time.Hour)))
	held, released = n.bodies.count()
	require.Equal(t, []int{0, 1}, []int{held, released})
	require.Zero(t, n.BodyBytes())
	require.True(t, n.database().refs.empty())
}

// TestTxnWithSeveralLargeValues puts many values with one body, equal ones once.
func TestTxnWithSeveralLargeValues(t *testing.T) {
	n := openLarge(t)
	op := func(key, value string) *pb.RequestOp {
		return &pb.RequestOp{
			Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key), Value: []byte(value), PrevKv: true}}}
	}
	get := &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte("a"),
		RangeEnd: []byte("z")}}}
	values := map[string]string{"a": big('a', 3000), "b": big('b', 4000), "c": big('a', 3000), "d": "small",
		"e": big('e', 5000)}
	request := func() *pb.InternalRaftRequest {
		return &pb.InternalRaftRequest{Txn: &pb.TxnRequest{Success: []*pb.RequestOp{
			op("a", values["a"]), op("b", values["b"]),
			{Request: &pb.RequestOp_RequestTxn{RequestTxn: &pb.TxnRequest{
				Compare: []*pb.Compare{{Key: []byte("never"), Target: pb.Compare_VERSION, Result: pb.Compare_EQUAL}},
				Success: []*pb.RequestOp{op("c", values["c"]), op("d", values["d"]), op("e", values["e"])},
				Failure: []*pb.RequestOp{op("c", big('f', 7000))},
			}}},
			get,
		}}}
	}
	check := func(resp *pb.TxnResponse, before bool) {
		t.Helper()
		inner := resp.Responses[2].GetResponseTxn()
		kvs := resp.Responses[3].GetResponseRange().Kvs
		require.Len(t, kvs, len(values))
		for _, kv := range kvs {
			require.Equal(t, values[string(kv.Key)], string(kv.Value))
		}
		if before {
			require.Equal(t, values["b"], string(resp.Responses[1].GetResponsePut().PrevKv.Value))
			require.Equal(t, values["e"], string(inner.Responses[2].GetResponsePut().PrevKv.Value))
		}
	}
	check(n.must(request()).(*pb.TxnResponse), false)
	held, _ := n.bodies.count()
	require.Equal(t, 1, held)
	require.EqualValues(t, 3000+4000+5000+7000, n.BodyBytes())
	check(n.must(request()).(*pb.TxnResponse), true)
	for key, value := range values {
		require.Equal(t, value, n.get(key))
	}
}

// TestUnusedBodyIsReleased orders a body whose transaction takes the other branch, and one
// whose lease does not exist.
func TestUnusedBodyIsReleased(t *testing.T) {
	n := openLarge(t)
	value := big('a', 5000)
	n.must(&pb.InternalRaftRequest{Txn: &pb.TxnRequest{
		Compare: []*pb.Compare{{Key: []byte("k"), Target: pb.Compare_VERSION, Result: pb.Compare_GREATER}},
		Success: []*pb.RequestOp{
			{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("k"), Value: []byte(value)}}}},
	}})
	_, err := n.try(putLease("k", value, 99))
	require.ErrorIs(t, err, lease.ErrLeaseNotFound)
	require.ErrorIs(t, n.order(Encoded{Command: []byte{kindLarge, 0xff}, Body: []byte("body")}).Err, ErrBadCommand)
	held, _ := n.bodies.count()
	require.Equal(t, 3, held)
	require.NoError(t, n.releaser.release(time.Now().Add(-time.Minute))) // too early
	_, released := n.bodies.count()
	require.Zero(t, released)
	require.NoError(t, n.releaser.release(time.Now().Add(time.Minute)))
	held, released = n.bodies.count()
	require.Equal(t, []int{0, 3}, []int{held, released})
}

// TestReleaserReleases lets time do it.
func TestReleaserReleases(t *testing.T) {
	n := openLarge(t, func(o *Options) { o.ReleaseGrace = time.Millisecond })
	n.StartReleasing()
	n.put("k", big('a', 5000))
	n.put("k", "small")
	n.compact(n.Revision())
	require.Eventually(t, func() bool {
		held, released := n.bodies.count()
		return held == 0 && released == 1
	}, 20*time.Second, time.Millisecond)
}

// TestCompactedValueIsReadable reads a revision, and asks for the value after compaction:
// within the grace period it is there, then the answer is that it is compacted.
func TestCompactedValueIsReadable(t *testing.T) {
	n := openLarge(t)
	a := big('a', 5000)
	n.put("k", a)
	read := func() *mvccpb.KeyValue {
		r, err := n.KV().Range(context.Background(), []byte("k"), nil, mvcc.RangeOptions{})
		require.NoError(t, err)
		return r.KVs[0]
	}
	early, late := read(), read()
	n.put("k", "small")
	n.compact(n.Revision())
	require.NoError(t, n.Resolve(context.Background(), early))
	require.Equal(t, a, string(early.Value))
	require.NoError(t, n.releaser.release(time.Now().Add(time.Hour)))
	require.ErrorIs(t, n.Resolve(context.Background(), late), mvcc.ErrCompacted)
}

func TestValueThatCannotBeHad(t *testing.T) {
	n := openLarge(t)
	n.put("k", big('a', 5000))
	read := func() error {
		resp, err := n.Range(context.Background(), &pb.RangeRequest{Key: []byte("k"), Serializable: true})
		require.Nil(t, resp)
		return err
	}
	n.bodies.set(func() { n.bodies.fail = errAway })
	var failed *ValueError
	require.ErrorAs(t, read(), &failed)
	require.ErrorIs(t, failed, errAway)
	require.EqualValues(t, 5000, failed.Size)
	require.EqualValues(t, 2, failed.Revision)

	n.bodies.set(func() { n.bodies.fail = nil })
	for ref, b := range n.bodies.bodies {
		wrong := bytes.Clone(b)
		wrong[100] ^= 1
		n.bodies.set(func() { n.bodies.bodies[ref] = wrong })
	}
	require.ErrorIs(t, read(), ErrWrongBytes)
	for ref, b := range n.bodies.bodies {
		n.bodies.set(func() { n.bodies.bodies[ref] = b[1:] })
	}
	require.ErrorIs(t, read(), ErrWrongBytes)
}

// TestVerifiedBytesAreRemembered trusts bytes only at their address.
func TestVerifiedBytesAreRemembered(t *testing.T) {
	var v verified
	one, wrong := []byte(big('a', 5000)), []byte(big('b', 5000))
	r := recordOf(one)
	for range 2 {
		require.True(t, v.check(r, one))
		require.False(t, v.check(r, wrong))
		require.False(t, v.check(r, one[1:]))
		require.False(t, v.check(r, append(one, 'x')[1:]), "the same length elsewhere")
	}
	require.True(t, v.check(r, bytes.Clone(one)))
	for i := range 2 * verifiedValues {
		value := []byte(fmt.Sprint(i))
		require.True(t, v.check(recordOf(value), value))
	}
	require.LessOrEqual(t, len(v.known), verifiedValues)
	require.True(t, v.check(recordOf(nil), nil))
}

func TestAnswersAreBounded(t *testing.T) {
	n := openLarge(t, func(o *Options) { o.ResponseBytes = 10_000 })
	for i := range 5 {
		n.put(fmt.Sprint("k", i), big('a'+byte(i), 3000))
	}
	ctx, all := context.Background(), &pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l")}
	var tooLarge *ResponseError
	_, err := n.Range(ctx, all)
	require.ErrorAs(t, err, &tooLarge)
	require.EqualValues(t, 15000, tooLarge.Bytes)
	all.Limit = 3
	resp, err := n.Range(ctx, all)
	require.NoError(t, err)
	require.Len(t, resp.Kvs, 3)
	n.put("k0", big('x', 20_000)) // one value is always possible
	require.Equal(t, big('x', 20_000), n.get("k0"))

	all.Limit = 0
	keys, chunks := 0, 0
	var last weak.Pointer[mvccpb.KeyValue]
	err = n.RangeStream(ctx, all, 4000, func(r *pb.RangeResponse) error {
		runtime.GC()
		require.True(t, last.Value() == nil, "sent values are kept")
		last = weak.Make(r.Kvs[0])
		chunks++
		for _, kv := range r.Kvs {
			require.Equal(t, n.get(string(kv.Key)), string(kv.Value))
			keys++
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 5, keys)
	require.GreaterOrEqual(t, chunks, 3)
	all.KeysOnly = true
	resp, err = n.Range(ctx, all)
	require.NoError(t, err)
	require.Len(t, resp.Kvs, 5)
	require.Empty(t, resp.Kvs[0].Value)
}

func TestQuotaCountsBodies(t *testing.T) {
	n := openLarge(t, func(o *Options) { o.QuotaBytes = 1 << 20 })
	request := put("k", big('a', 400_000))
	for range 2 {
		require.NoError(t, n.CheckQuota(request))
		n.must(request)
	}
	require.Less(t, n.DBSize(), int64(400_000))
	require.Error(t, n.CheckQuota(request))
	require.NotNil(t, within(t, n.Wanted())) // the alarm

	n.compact(n.Revision())
	require.NoError(t, n.releaser.release(time.Now().Add(time.Hour)))
	require.NoError(t, n.CheckQuota(request))
	require.EqualValues(t, 100, BodyRef{Size: 200, K: 2}.share())
	require.EqualValues(t, 67, BodyRef{Size: 200, K: 3}.share())
}

func TestLargeOptions(t *testing.T) {
	for _, change := range []func(*Options){
		func(o *Options) { o.LargeValueBytes = 10 },
		func(o *Options) { o.ResponseBytes = -1 },
		func(o *Options) { o.ReleaseGrace = -1 },
	} {
		o := largeOptions(t.TempDir(), newFakeBodies())
		change(&o)
		_, err := Open(o)
		require.ErrorContains(t, err, "Options.")
	}
	n := openLarge(t, func(o *Options) { o.LargeValueBytes = -1 })
	n.put("k", big('a', 5000))
	require.Len(t, n.stored("k"), 5000)
	n.SetLargeValueBytes(1000)
	n.put("l", big('a', 5000))
	require.Len(t, n.stored("l"), 5000, "there are no large values")

	n = openLarge(t)
	n.SetLargeValueBytes(4000)
	n.put("k", big('a', 3999))
	require.Len(t, n.stored("k"), 3999)
	n.put("l", big('a', 4000))
	require.Less(t, len(n.stored("l")), 4000, "it is in a body")
}
