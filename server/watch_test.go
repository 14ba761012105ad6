package server

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// rawWatch is a bare watch stream.
type rawWatch struct {
	t      testing.TB
	stream pb.Watch_WatchClient
}

func (f *fixture) rawWatch(t testing.TB, ctx context.Context) *rawWatch {
	stream, err := pb.NewWatchClient(f.client.ActiveConnection()).Watch(ctx)
	require.NoError(t, err)
	return &rawWatch{t, stream}
}

func (w *rawWatch) create(r *pb.WatchCreateRequest) *pb.WatchResponse {
	w.t.Helper()
	w.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: r}})
	return w.recv()
}

func (w *rawWatch) send(r *pb.WatchRequest) { require.NoError(w.t, w.stream.Send(r)) }

func (w *rawWatch) recv() *pb.WatchResponse {
	w.t.Helper()
	resp, err := w.stream.Recv()
	require.NoError(w.t, err)
	return resp
}

func (w *rawWatch) askProgress() {
	w.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}})
}

func TestWatch(t *testing.T) {
	f := start(t)
	c, ctx := f.client, testContext(t)
	for i := range 3 {
		_, err := c.Put(ctx, "w", fmt.Sprint(i))
		require.NoError(t, err)
	}
	events := c.Watch(ctx, "w", clientv3.WithRev(3), clientv3.WithPrevKV())
	_, err := c.Delete(ctx, "w")
	require.NoError(t, err)
	var got []string
	for len(got) < 3 {
		for _, e := range (<-events).Events {
			require.NotNil(t, e.PrevKv)
			got = append(got, fmt.Sprintf("%d %s %s<-%s", e.Kv.ModRevision, e.Type, e.Kv.Value, e.PrevKv.Value))
		}
	}
	require.Equal(t, []string{"3 PUT 1<-0", "4 PUT 2<-1", "5 DELETE <-2"}, got)
}

func TestWatchesOfOneStream(t *testing.T) {
	f := start(t)
	c, ctx := f.client, testContext(t)
	w := f.rawWatch(t, ctx)
	a := w.create(&pb.WatchCreateRequest{Key: []byte("a")})
	require.True(t, a.Created)
	require.EqualValues(t, 0x77, a.Header.ClusterId)
	puts := w.create(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte{0}, WatchId: 7,
		Filters: []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NODELETE}})
	require.EqualValues(t, 7, puts.WatchId)
	dup := w.create(&pb.WatchCreateRequest{Key: []byte("a"), WatchId: 7})
	require.True(t, dup.Canceled && dup.Created)
	require.EqualValues(t, -1, dup.WatchId)
	require.Contains(t, dup.CancelReason, "uplicate")
	empty := w.create(&pb.WatchCreateRequest{Key: []byte("b"), RangeEnd: []byte("a")})
	require.True(t, empty.Canceled)
	past := w.create(&pb.WatchCreateRequest{Key: []byte("a"), StartRevision: -1})
	require.Equal(t, rpctypes.ErrCompacted.Error(), past.CancelReason)

	_, err := c.Delete(ctx, "a")
	require.NoError(t, err)
	_, err = c.Put(ctx, "a", "1")
	require.NoError(t, err)
	_, err = c.Delete(ctx, "a")
	require.NoError(t, err)
	_, err = c.Put(ctx, "b", "2")
	require.NoError(t, err)
	seen := map[int64][]string{}
	for len(seen[a.WatchId]) < 2 || len(seen[7]) < 2 {
		resp := w.recv()
		for _, e := range resp.Events {
			seen[resp.WatchId] = append(seen[resp.WatchId], fmt.Sprintf("%s %s", e.Type, e.Kv.Key))
		}
	}
	require.Equal(t, map[int64][]string{a.WatchId: {"PUT a", "DELETE a"}, 7: {"PUT a", "PUT b"}}, seen)

	w.send(&pb.WatchRequest{
		RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: &pb.WatchCancelRequest{WatchId: 7}}})
	gone := w.recv()
	require.True(t, gone.Canceled)
	require.EqualValues(t, 7, gone.WatchId)
	again := w.create(&pb.WatchCreateRequest{Key: []byte("a"), WatchId: 7})
	require.False(t, again.Canceled, "a cancelled id is free")
}

func TestWatchOfCompactedRevision(t *testing.T) {
	f := start(t)
	c, ctx := f.client, testContext(t)
	for range 10 {
		_, err := c.Put(ctx, "k", "v")
		require.NoError(t, err)
	}
	_, err := c.Compact(ctx, 8)
	require.NoError(t, err)
	w := f.rawWatch(t, ctx)
	created := w.create(&pb.WatchCreateRequest{Key: []byte("k"), StartRevision: 3, WatchId: 5})
	require.True(t, created.Created)
	ended := w.recv()
	require.True(t, ended.Canceled)
	require.EqualValues(t, 8, ended.CompactRevision)
	again := w.create(&pb.WatchCreateRequest{Key: []byte("k"), StartRevision: 9, WatchId: 5})
	require.False(t, again.Canceled, "the ended watch's id is free")
	require.EqualValues(t, 9, w.recv().Events[0].Kv.ModRevision)
}

// After a progress report everything up to its revision was delivered.
func TestProgressNeverRunsAhead(t *testing.T) {
	f := start(t, func(c *Config) { c.WatchProgressInterval = 100 * time.Millisecond })
	c, ctx := f.client, testContext(t)
	const writes = 400
	w := f.rawWatch(t, ctx)
	w.create(&pb.WatchCreateRequest{Key: []byte("p"), ProgressNotify: true})
	w.create(&pb.WatchCreateRequest{Key: []byte("q")})
	wrote := make(chan error, 1)
	go func() {
		for i := range writes {
			if _, err := c.Put(ctx, "p", fmt.Sprint(i)); err != nil {
				wrote <- err
				return
			}
		}
		wrote <- nil
	}()
	delivered, reports := int64(1), 0
	for delivered < writes+1 {
		w.askProgress()
		resp := w.recv()
		if len(resp.Events) == 0 {
			require.LessOrEqual(t, resp.Header.Revision, delivered, "revision %d reported before its event",
				resp.Header.Revision)
			reports++
			continue
		}
		for _, e := range resp.Events {
			require.Equal(t, delivered+1, e.Kv.ModRevision)
			delivered = e.Kv.ModRevision
		}
	}
	require.NoError(t, <-wrote)
	require.Positive(t, reports)
}

func TestProgressNotify(t *testing.T) {
	f := start(t, func(c *Config) { c.WatchProgressInterval = 100 * time.Millisecond })
	ctx := testContext(t)
	w := f.rawWatch(t, ctx)
	created := w.create(&pb.WatchCreateRequest{Key: []byte("p"), ProgressNotify: true})
	_, err := f.client.Put(ctx, "other", "")
	require.NoError(t, err)
	for {
		report := w.recv()
		require.Empty(t, report.Events)
		require.Equal(t, created.WatchId, report.WatchId)
		if report.Header.Revision == 2 {
			return
		}
	}
}

func TestWatchFragments(t *testing.T) {
	f := start(t, func(c *Config) { c.MaxRequestBytes = 1 << 20 })
	c, ctx := f.client, testContext(t)
	const keys = 6
	value := strings.Repeat("x", 1<<19)
	for i := range keys {
		_, err := c.Put(ctx, fmt.Sprintf("f%d", i), value)
		require.NoError(t, err)
	}
	w := f.rawWatch(t, ctx)
	w.create(&pb.WatchCreateRequest{Key: []byte("f"), RangeEnd: []byte("g"), StartRevision: 2, Fragment: true})
	var sizes []int
	got := 0
	for got < keys {
		resp := w.recv()
		got += len(resp.Events)
		sizes = append(sizes, len(resp.Events))
		require.Equal(t, got < keys, resp.Fragment)
	}
	require.Greater(t, len(sizes), 1, "%v", sizes)
}

func TestFragmentKeepsEveryEvent(t *testing.T) {
	for limit := 1; limit < 200; limit += 7 {
		for _, marked := range []bool{true, false} {
			resp := &pb.WatchResponse{Header: &pb.ResponseHeader{Revision: 9}, WatchId: 3}
			for i := range 10 {
				kv := &mvccpb.KeyValue{Key: []byte(strings.Repeat("k", i*5)), Version: int64(i), ModRevision: int64(i / 2)}
				resp.Events = append(resp.Events, &mvccpb.Event{Kv: kv})
			}
			next, pieces := int64(0), 0
			var last *pb.WatchResponse
			for _, piece := range fragment(resp, limit, marked, nothingMissing) {
				pieces++
				if last != nil {
					require.Equal(t, marked, last.Fragment)
				}
				if last != nil && !marked {
					require.Zero(t, next%2, "a revision was cut")
					require.Equal(t, next/2-1, last.Header.Revision)
				}
				for _, e := range piece.Events {
					require.Equal(t, next, e.Kv.Version)
					next++
				}
				last = piece
			}
			require.False(t, last.Fragment)
			require.EqualValues(t, 9, last.Header.Revision)
			require.EqualValues(t, 10, next)
			require.True(t, limit > 1 || pieces >= 5)
		}
	}
}

// A client that does not read must not hold up writers, and gets everything in the end.
func TestSlowWatcherDoesNotStallWrites(t *testing.T) {
	f := start(t)
	c, ctx := f.client, testContext(t)
	w := f.rawWatch(t, ctx)
	w.create(&pb.WatchCreateRequest{Key: []byte("k")})
	value := strings.Repeat("x", 64<<10)
	const writes = 400 // 25 MiB: more than windows and buffers hold
	for range writes {
		_, err := c.Put(ctx, "k", value)
		require.NoError(t, err)
	}
	next := int64(2)
	for next < writes+2 {
		for _, e := range w.recv().Events {
			require.Equal(t, next, e.Kv.ModRevision)
			next++
		}
	}
}

func TestRequireLeader(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	needs := clientv3.WithRequireLeader(ctx)
	w := f.rawWatch(t, needs)
	w.create(&pb.WatchCreateRequest{Key: []byte("k")})
	patient := f.rawWatch(t, ctx)
	patient.create(&pb.WatchCreateRequest{Key: []byte("k")})
	f.fake.set(func(l *fakeLog) { l.leader = 0 })
	_, err := w.stream.Recv()
	requireStatus(t, rpctypes.ErrGRPCNoLeader, err)
	eventually(t, "requests to be refused", func() bool {
		_, err := f.kvClient().Range(needs, &pb.RangeRequest{Key: []byte("k"), Serializable: true})
		return err != nil && err.Error() == rpctypes.ErrGRPCNoLeader.Error()
	})
	f.fake.set(func(l *fakeLog) { l.leader = 0x10 })
	_, err = f.client.Put(ctx, "k", "v")
	require.NoError(t, err)
	require.Len(t, patient.recv().Events, 1)
}

// A switch of the protocol leaves a member without a leader for a moment, and so does an election.
func TestRequireLeaderWaitsForAnElection(t *testing.T) {
	f := start(t, func(c *Config) { c.Node.ElectionTimeout = 20 * time.Second })
	needs := clientv3.WithRequireLeader(testContext(t))
	f.fake.set(func(l *fakeLog) { l.leader = 0 })
	eventually(t, "the loss of the leader", func() bool { return !f.self.Load().led })
	within, cancel := context.WithTimeout(needs, 100*time.Millisecond)
	defer cancel()
	_, err := f.kvClient().Range(within, &pb.RangeRequest{Key: []byte("k"), Serializable: true})
	require.Equal(t, codes.DeadlineExceeded, status.Code(err), "%v", err)

	answered := make(chan error, 1)
	go func() {
		_, err := f.kvClient().Range(needs, &pb.RangeRequest{Key: []byte("k"), Serializable: true})
		answered <- err
	}()
	w := f.rawWatch(t, needs)
	f.fake.set(func(l *fakeLog) { l.leader = 0x10 })
	require.NoError(t, <-answered)
	w.create(&pb.WatchCreateRequest{Key: []byte("k")})
}

func nothingMissing(*mvccpb.Event) int { return 0 }

// A watch with the id of a cancelled one gets no events of that one, though the store still holds events of that one.
func TestWatchIDGivenAnew(t *testing.T) {
	f := start(t)
	c, ctx := f.client, testContext(t)
	w := f.rawWatch(t, ctx)
	w.create(&pb.WatchCreateRequest{Key: []byte("old"), WatchId: 7})
	value := strings.Repeat("x", 64<<10)
	for range 50 { // more than the client's window holds
		_, err := c.Put(ctx, "old", value)
		require.NoError(t, err)
	}
	w.send(&pb.WatchRequest{
		RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: &pb.WatchCancelRequest{WatchId: 7}},
	})
	w.send(&pb.WatchRequest{
		RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{Key: []byte("new"), WatchId: 7}}})
	created := w.recv()
	for ; !created.Created; created = w.recv() {
	}
	require.False(t, created.Canceled, created.CancelReason)
	_, err := c.Put(ctx, "new", "")
	require.NoError(t, err)
	next := w.recv()
	require.EqualValues(t, 7, next.WatchId)
	require.Equal(t, "new", string(next.Events[0].Kv.Key))
}

// A client that only asks and never reads must not use up memory: its stream ends, retryably.
func TestWatchOfClientThatNeverReads(t *testing.T) {
	f := start(t)
	w := f.rawWatch(t, testContext(t))
	w.create(&pb.WatchCreateRequest{Key: []byte("k")})
	key := []byte(strings.Repeat("k", 1000))
	refused := &pb.WatchCreateRequest{Key: key, RangeEnd: []byte("a")}
	create := &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: refused}}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for w.stream.Send(create) == nil {
		}
	}()
	eventually(t, "the stream to end", func() bool { return f.metrics.WatchStreams.Load() == 0 })
	for {
		if _, err := w.stream.Recv(); err != nil {
			requireStatus(t, errUnread, err)
			break
		}
	}
	<-sent
}
