package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/store"
	"github.com/braidlog/braid/internal/testsize"
)

// large makes values of 2 kB and more travel as bodies.
func large(c *Config) { c.Store.LargeValueBytes = 2000 }

func long(letter string, size int) string { return strings.Repeat(letter, size) }

// held is how many bodies the log keeps.
func (f *fixture) held() (n int) {
	f.fake.set(func(l *fakeLog) { n = len(l.bodies) })
	return n
}

func TestLargeValues(t *testing.T) {
	f := start(t, large)
	ctx := testContext(t)
	a, b, c := long("a", 3000), long("b", 4000), long("c", 2<<20-1000)
	for _, value := range []string{a, b, c} {
		before := f.held()
		_, err := f.client.Put(ctx, "k", value)
		require.NoError(t, err)
		require.Equal(t, before+1, f.held())
		got, err := f.client.Get(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, value, string(got.Kvs[0].Value))
	}
	put, err := f.client.Put(ctx, "k", "small", clientv3.WithPrevKV())
	require.NoError(t, err)
	require.Equal(t, c, string(put.PrevKv.Value))
	old, err := f.client.Get(ctx, "k", clientv3.WithRev(2), clientv3.WithSerializable())
	require.NoError(t, err)
	require.Equal(t, a, string(old.Kvs[0].Value))

	resp, err := f.client.Txn(ctx).If(
		clientv3.Compare(clientv3.Value("k"), "=", "small"), clientv3.Compare(clientv3.CreateRevision("n"), "=", 0),
	).Then(
		clientv3.OpPut("m", a), clientv3.OpPut("n", b), clientv3.OpGet("m"), clientv3.OpGet("n"),
	).Commit()
	require.NoError(t, err)
	require.True(t, resp.Succeeded)
	require.Equal(t, a, string(resp.Responses[2].GetResponseRange().Kvs[0].Value))
	require.Equal(t, b, string(resp.Responses[3].GetResponseRange().Kvs[0].Value))

	for _, cmp := range []struct {
		sign, value string
		want        bool
	}{{"=", a, true}, {"!=", a, false}, {"=", b, false}, {"!=", b, true}, {"<", b, true}, {">", b, false},
		{">", "a", true}, {"<", a, false}} {
		for _, write := range []bool{false, true} {
			op := clientv3.OpGet("m")
			if write {
				op = clientv3.OpPut("out", fmt.Sprint(cmp))
			}
			got, err := f.client.Txn(ctx).If(clientv3.Compare(clientv3.Value("m"), cmp.sign, cmp.value)).Then(
				op).Else(op).Commit()
			require.NoError(t, err)
			require.Equal(t, cmp.want, got.Succeeded, "%s %.5s %t", cmp.sign, cmp.value, write)
		}
	}
	sorted, err := f.client.Get(ctx, "", clientv3.WithPrefix(),
		clientv3.WithSort(clientv3.SortByValue, clientv3.SortDescend), clientv3.WithLimit(3))
	require.NoError(t, err)
	require.Equal(t, []string{"out", "k", "n"}, []string{string(sorted.Kvs[0].Key), string(sorted.Kvs[1].Key),
		string(sorted.Kvs[2].Key)})
	require.Equal(t, b, string(sorted.Kvs[2].Value))

	deleted, err := f.client.Delete(ctx, "m", clientv3.WithPrevKV())
	require.NoError(t, err)
	require.Equal(t, a, string(deleted.PrevKvs[0].Value))
}

// TestLargeValueThatCannotBeHad also distinguishes a write that succeeded from its answer.
func TestLargeValueThatCannotBeHad(t *testing.T) {
	f := start(t, large)
	kv, ctx := f.kvClient(), testContext(t)
	key, value := []byte("k"), []byte(long("a", 3000))
	_, err := kv.Put(ctx, &pb.PutRequest{Key: key, Value: value})
	require.NoError(t, err)
	f.fake.set(func(l *fakeLog) { l.fetch = errors.New("too few") })
	for _, serializable := range []bool{false, true} {
		resp, err := kv.Range(ctx, &pb.RangeRequest{Key: key, Serializable: serializable})
		require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
		require.Nil(t, resp)
	}
	// Too little is left, according to all: clients must not repeat the request by themselves.
	f.fake.set(func(l *fakeLog) { l.fetch = &braid.BodyError{Need: 2, Found: 1, Asked: 4, Answered: 4} })
	_, err = kv.Range(ctx, &pb.RangeRequest{Key: key})
	require.Equal(t, codes.DataLoss, status.Code(err), "%v", err)
	require.ErrorContains(t, err, "1 good fragments found, 2 needed")
	f.fake.set(func(l *fakeLog) { l.fetch = &braid.BodyError{Need: 2, Found: 1, Asked: 4, Answered: 3} })
	_, err = kv.Put(ctx, &pb.PutRequest{Key: key, Value: []byte("new"), PrevKv: true})
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.ErrorContains(t, err, "took effect")
	got, err := kv.Range(ctx, &pb.RangeRequest{Key: key})
	require.NoError(t, err)
	require.Equal(t, "new", string(got.Kvs[0].Value))

	f.fake.set(func(l *fakeLog) {
		l.fetch = nil
		for ref, b := range l.bodies {
			l.bodies[ref] = append([]byte("x"), b[1:]...)
		}
	})
	_, err = kv.Range(ctx, &pb.RangeRequest{Key: key, Revision: 2})
	require.Equal(t, codes.DataLoss, status.Code(err), "%v", err)
}

func TestLargeAnswersAreBounded(t *testing.T) {
	f := start(t, large, func(c *Config) { c.Store.ResponseBytes = 10_000 })
	ctx := testContext(t)
	for i := range 5 {
		_, err := f.client.Put(ctx, fmt.Sprint("k", i), long(fmt.Sprint(i), 3000))
		require.NoError(t, err)
	}
	_, err := f.client.Get(ctx, "k", clientv3.WithPrefix())
	require.Equal(t, codes.ResourceExhausted, status.Code(err), "%v", err)
	got, err := f.client.Get(ctx, "k", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	require.NoError(t, err)
	require.Len(t, got.Kvs, 5)
	stream, err := f.kvClient().RangeStream(ctx, &pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l")})
	require.NoError(t, err)
	n := 0
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		for _, kv := range chunk.RangeResponse.Kvs {
			require.Equal(t, long(fmt.Sprint(n), 3000), string(kv.Value))
			n++
		}
	}
	require.Equal(t, 5, n)
}

// TestWatchLargeValues watches history and what is new, with previous values, twice: events
// are shared.
func TestWatchLargeValues(t *testing.T) {
	f := start(t, large)
	ctx := testContext(t)
	values := []string{long("a", 3000), "small", long("b", 5000), long("c", 1<<20)}
	put := func() {
		for _, value := range values {
			_, err := f.client.Put(ctx, "k", value)
			require.NoError(t, err)
		}
	}
	put()
	var watches []clientv3.WatchChan
	for _, from := range []int64{1, 2} {
		watches = append(watches, f.client.Watch(ctx, "k", clientv3.WithRev(from), clientv3.WithPrevKV(),
			clientv3.WithFragment()))
	}
	put()
	_, err := f.client.Delete(ctx, "k")
	require.NoError(t, err)
	for _, w := range watches {
		n, previous := 0, ""
		for n < 2*len(values)+1 {
			resp := <-w
			require.NoError(t, resp.Err())
			for _, e := range resp.Events {
				if n > 0 {
					require.Equal(t, previous, string(e.PrevKv.Value))
				}
				if previous = string(e.Kv.Value); n < 2*len(values) {
					require.Equal(t, values[n%len(values)], previous)
				} else {
					require.Equal(t, clientv3.EventTypeDelete, e.Type)
				}
				n++
			}
		}
	}
}

// TestWatchDuringFailures loses the bytes for a while: the client's watch continues by itself
// and misses nothing. Bytes that are wrong end it.
func TestWatchDuringFailures(t *testing.T) {
	f := start(t, large)
	ctx := testContext(t)
	_, err := f.client.Put(ctx, "k", long("a", 3000))
	require.NoError(t, err)
	f.fake.set(func(l *fakeLog) { l.fetch = errors.New("too few") })
	w := f.client.Watch(ctx, "k", clientv3.WithRev(1))
	_, err = f.client.Put(ctx, "k", "small")
	require.NoError(t, err)
	eventually(t, "the watch to ask", func() (asked bool) {
		f.fake.set(func(l *fakeLog) { asked = l.fetched > 1 })
		return asked
	})
	f.fake.set(func(l *fakeLog) { l.fetch = nil })
	for n := 0; n < 2; {
		resp := <-w
		require.NoError(t, resp.Err())
		for _, e := range resp.Events {
			require.Equal(t, []string{long("a", 3000), "small"}[n], string(e.Kv.Value))
			n++
		}
	}
	f.fake.set(func(l *fakeLog) {
		for ref := range l.bodies {
			l.bodies[ref] = make([]byte, ref.Size)
		}
	})
	raw := f.rawWatch(t, ctx)
	require.True(t, raw.create(&pb.WatchCreateRequest{Key: []byte("k"), StartRevision: 1}).Created)
	resp := raw.recv()
	require.True(t, resp.Canceled)
	require.Contains(t, resp.CancelReason, "not those that were written")
	require.Empty(t, resp.Events)
	require.True(t, raw.create(&pb.WatchCreateRequest{Key: []byte("k")}).Created, "the stream lives on")
}

// TestUnreadableValueEndsOneWatch loses a value: the watch that needs it waits, and ends when it is lost according to
// all members; the other watches of its stream continue.
func TestUnreadableValueEndsOneWatch(t *testing.T) {
	f := start(t, large)
	ctx := testContext(t)
	_, err := f.client.Put(ctx, "k", long("a", 3000))
	require.NoError(t, err)
	raw := f.rawWatch(t, ctx)
	lose := func(how error) { f.fake.set(func(l *fakeLog) { l.fetch = how }) }
	lose(errors.New("too few"))
	asked := func() {
		t.Helper()
		f.fake.set(func(l *fakeLog) { l.fetched = 0 })
		eventually(t, "the watch to ask", func() (yes bool) {
			f.fake.set(func(l *fakeLog) { yes = l.fetched > 1 })
			return yes
		})
	}
	bad := raw.create(&pb.WatchCreateRequest{Key: []byte("k"), StartRevision: 1}).WatchId
	asked()
	good := raw.create(&pb.WatchCreateRequest{Key: []byte("other")}).WatchId
	next := func(key, value string) {
		t.Helper()
		_, err := f.client.Put(ctx, key, value)
		require.NoError(t, err)
		resp := raw.recv()
		require.Equal(t, good, resp.WatchId)
		require.Equal(t, value, string(resp.Events[0].Kv.Value))
	}
	next("other", "1")
	_, err = f.client.Put(ctx, "k", "later") // waits behind the value that is missing
	require.NoError(t, err)
	next("other", "2")

	lose(nil)
	for _, want := range []string{long("a", 3000), "later"} {
		resp := raw.recv()
		require.Equal(t, bad, resp.WatchId)
		require.Equal(t, want, string(resp.Events[0].Kv.Value))
	}

	lose(errors.New("too few"))
	again := raw.create(&pb.WatchCreateRequest{Key: []byte("k"), StartRevision: 1}).WatchId
	asked()
	next("other", "3")
	lose(&braid.BodyError{Need: 1, Asked: 2, Answered: 2})
	resp := raw.recv()
	require.Equal(t, again, resp.WatchId)
	require.True(t, resp.Canceled)
	require.Contains(t, resp.CancelReason, codes.DataLoss.String())
	lose(nil)
	next("other", "4")
}

// TestProgressWaitsForParkedWatches loses a value: progress is reported after its event, and not later.
func TestProgressWaitsForParkedWatches(t *testing.T) {
	f := start(t, large)
	ctx := testContext(t)
	sent := &recordingWatch{ctx: ctx}
	ws := f.bareWatch(t, sent)
	require.NoError(t, ws.create(&pb.WatchCreateRequest{Key: []byte("k")}))
	f.fake.set(func(l *fakeLog) { l.fetch = errors.New("too few") })
	put, err := f.client.Put(ctx, "k", long("a", 3000))
	require.NoError(t, err)
	ws.askedProgress = true
	require.False(t, ws.answerProgress())
	for range 2 {
		resp := <-ws.events.Chan()
		require.NoError(t, ws.deliver(&resp))
	}
	require.Empty(t, sent.sent)
	require.True(t, ws.answerProgress())

	f.fake.set(func(l *fakeLog) { l.fetch = nil })
	var queue weak.Pointer[parked]
	for len(sent.sent) == 0 {
		piece := <-ws.fetched
		queue = weak.Make(piece.parked)
		require.NoError(t, piece.watch.unpark(piece.parked, piece.err))
	}
	eventually(t, "the queue to be freed", func() bool {
		runtime.GC()
		return queue.Value() == nil
	})
	eventually(t, "progress", func() bool { return !ws.answerProgress() })
	resp := <-ws.events.Chan()
	require.NoError(t, ws.deliver(&resp))
	require.Len(t, sent.sent, 2)
	require.Len(t, sent.sent[0].Events, 1)
	require.EqualValues(t, noWatch, sent.sent[1].WatchId)
	require.Equal(t, put.Header.Revision, sent.sent[1].Header.Revision)
}

// TestSentPiecesAreFreed: a response may have a thousand revisions with large values. Its values are not kept until all
// of it is sent.
func TestSentPiecesAreFreed(t *testing.T) {
	sent := &recordingWatch{ctx: t.Context()}
	s := &watch{w: &watchStream{stream: sent}}
	pieces := []*pb.WatchResponse{{WatchId: 1}, {WatchId: 2}, {WatchId: 3}}
	sent.sending = func() {
		for i := range sent.sent {
			require.Nil(t, pieces[i])
		}
	}
	require.NoError(t, s.send(&pb.ResponseHeader{}, pieces))
	require.Len(t, sent.sent, 3)
}

// TestSlowWatcherEndsWithCompaction reads events whose values are gone by then.
func TestSlowWatcherEndsWithCompaction(t *testing.T) {
	f := start(t, large, func(c *Config) { c.Store.ReleaseGrace = time.Millisecond })
	ctx := testContext(t)
	_, err := f.client.Put(ctx, "k", long("a", 3000))
	require.NoError(t, err)
	stream := f.store.KV().NewWatchStream()
	defer stream.Close()
	_, err = stream.Watch(ctx, 0, []byte("k"), nil, 1)
	require.NoError(t, err)
	event := (<-stream.Chan()).Events[0]
	put, err := f.client.Put(ctx, "k", "small")
	require.NoError(t, err)
	_, err = f.client.Compact(ctx, put.Header.Revision, clientv3.WithCompactPhysical())
	require.NoError(t, err)
	eventually(t, "the release", func() bool { return f.held() == 0 })
	sent := &recordingWatch{ctx: ctx}
	ws := &watchStream{s: f.Server, stream: sent, events: stream}
	eventually(t, "an answer", func() bool { // a busy machine has none in the short time that a watch waits
		var later []*mvccpb.KeyValue
		later, err = ws.resolve(&pb.WatchResponse{Events: []*mvccpb.Event{event}})
		return len(later) == 0
	})
	require.True(t, endsWatch(err), "%v", err)
	requireStatus(t, rpctypes.ErrGRPCCompacted, toStatus(err))
}

// recordingWatch is a stream that keeps what is sent.
type recordingWatch struct {
	pb.Watch_WatchServer
	ctx     context.Context
	sent    []*pb.WatchResponse
	sending func() // called before one is sent, if it is not nil
}

func (r *recordingWatch) Send(resp *pb.WatchResponse) error {
	if r.sending != nil {
		r.sending()
	}
	r.sent = append(r.sent, resp)
	return nil
}

func (r *recordingWatch) Context() context.Context { return r.ctx }

// TestLargeValuesOfElections goes through a service that is a client itself.
func TestLargeValuesOfElections(t *testing.T) {
	f := start(t, large)
	ctx := testContext(t)
	session, err := concurrency.NewSession(f.client)
	require.NoError(t, err)
	defer session.Close()
	e := concurrency.NewElection(session, "e")
	require.NoError(t, e.Campaign(ctx, long("a", 5000)))
	leader, err := e.Leader(ctx)
	require.NoError(t, err)
	require.Equal(t, long("a", 5000), string(leader.Kvs[0].Value))
}

// TestSnapshotWithLargeValues saves a snapshot as etcdctl does, restores it with etcdutl's
// code, and imports the result.
func TestSnapshotWithLargeValues(t *testing.T) {
	f := start(t, large)
	ctx := testContext(t)
	for i := range 20 {
		_, err := f.client.Put(ctx, fmt.Sprint("k", i), long(fmt.Sprint(i%10), 1<<20))
		require.NoError(t, err)
	}
	file := filepath.Join(t.TempDir(), "saved.db")
	_, err := snapshot.NewV3(zap.NewNop()).Save(ctx, clientv3.Config{Endpoints: []string{f.addr}, Logger: zap.NewNop()},
		file)
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "etcd")
	require.NoError(t, snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: file, Name: "m", OutputDataDir: dir,
		PeerURLs: []string{"http://127.0.0.1:1"}, InitialCluster: "m=http://127.0.0.1:1", InitialClusterToken: "t",
	}))
	back := t.TempDir()
	require.NoError(t, store.Import(filepath.Join(dir, "member", "snap", "db"), back,
		store.ImportOptions{SkipHashCheck: true}))
	again := start(t, large, func(c *Config) { c.Store.Dir = back })
	for i := range 20 {
		got, err := again.client.Get(ctx, fmt.Sprint("k", i))
		require.NoError(t, err)
		require.Equal(t, long(fmt.Sprint(i%10), 1<<20), string(got.Kvs[0].Value))
	}
	require.Zero(t, again.held())
	left, err := filepath.Glob(filepath.Join(f.cfg.Store.Dir, "db.copy.*"))
	require.NoError(t, err)
	require.Empty(t, left)
	member := filepath.Join(f.cfg.Store.Dir, "db")
	data, err := os.ReadFile(member)
	require.NoError(t, err)
	require.Less(t, len(data), 1<<20)
	require.ErrorContains(t, store.Import(member, t.TempDir(), store.ImportOptions{SkipHashCheck: true}), "snapshot save")
}

// TestSixteenMiB is within the default limit from end to end; above it the refusal names it.
func TestSixteenMiB(t *testing.T) {
	testsize.Long(t)
	f := start(t)
	ctx := testContext(t)
	c := f.dial(t, clientv3.Config{MaxCallSendMsgSize: 64 << 20})
	value := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	_, err := c.Put(ctx, "k", string(value))
	require.NoError(t, err)
	got, err := c.Get(ctx, "k")
	require.NoError(t, err)
	require.True(t, bytes.Equal(value, got.Kvs[0].Value))
	_, err = c.Txn(ctx).Then(clientv3.OpPut("a", string(value)), clientv3.OpPut("b", string(value[1:]))).Commit()
	require.ErrorIs(t, err, rpctypes.ErrRequestTooLarge)
	require.Equal(t, 1, f.held())
}
