package server

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// What is encoded around shared values is decoded as what it was, and has their very bytes.
func TestSharedValues(t *testing.T) {
	kv := func(size int) *mvccpb.KeyValue {
		return &mvccpb.KeyValue{Key: []byte("k"), Value: []byte(strings.Repeat("v", size)), CreateRevision: 2,
			ModRevision: 300, Version: 5, Lease: -7}
	}
	large := kv(sharedBytes)
	for _, events := range [][]*mvccpb.Event{
		{{Kv: large}},
		{{Kv: kv(1)}, {Kv: large, PrevKv: kv(3)},
			{Type: mvccpb.Event_DELETE, Kv: &mvccpb.KeyValue{Key: []byte("d"), ModRevision: 9}, PrevKv: large}},
		{{Kv: kv(100 << 10), PrevKv: kv(70 << 10)}, {Kv: kv(0)}},
	} {
		in := &pb.WatchResponse{
			Header: &pb.ResponseHeader{ClusterId: 1, MemberId: 2, Revision: 300, RaftTerm: 4}, WatchId: 3, Fragment: true,
			Canceled: true, CompactRevision: 8, CancelReason: "because", Events: events,
		}
		require.True(t, sharesValues(in))
		data, err := codec{}.Marshal(in)
		require.NoError(t, err)
		require.Equal(t, proto.Size(in), data.Len())
		out := new(pb.WatchResponse)
		require.NoError(t, codec{}.Unmarshal(data, out))
		require.True(t, proto.Equal(in, out))
		shared := false
		for _, b := range data {
			shared = shared || &b.ReadOnlyData()[0] == &large.Value[0]
		}
		require.True(t, shared || events[0].Kv != large && len(events) == 2)
	}
}

// Streams whose clients do not read share what they hold.
func TestUnreadWatchesTakeLittleMemory(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // of pools
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	put := func(n int) {
		for range n {
			_, err := f.client.Put(ctx, "k", strings.Repeat("x", 60_000))
			require.NoError(t, err)
		}
	}
	put(20)
	before := heap()
	conn, err := grpc.NewClient("passthrough:"+f.addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(64<<10))
	require.NoError(t, err)
	defer conn.Close()
	const streams = 150
	for range streams {
		stream, err := pb.NewWatchClient(conn).Watch(ctx)
		require.NoError(t, err)
		w := &rawWatch{t, stream}
		w.create(&pb.WatchCreateRequest{Key: []byte("k")})
	}
	put(200) // more than the store queues for a watch
	require.Less(t, (heap()-before)/streams, 400<<10, "bytes for each stream, that of its client among them")
}
