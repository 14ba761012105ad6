package server

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// putsRequest is a message of a stream of puts; keys and values alternate.
func putsRequest(pairs ...string) *pb.TxnRequest {
	r := new(pb.TxnRequest)
	for i := 0; i < len(pairs); i += 2 {
		r.Success = append(r.Success, putOp(&pb.PutRequest{Key: []byte(pairs[i]), Value: []byte(pairs[i+1])}))
	}
	return r
}

func putOp(r *pb.PutRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: r}}
}

// putStreamOf opens a stream of puts.
func putStreamOf(ctx context.Context, t testing.TB, c *clientv3.Client) grpc.ClientStream {
	stream, err := c.ActiveConnection().NewStream(ctx,
		&grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, PutStreamMethod)
	require.NoError(t, err)
	return stream
}

// answerOf receives an answer.
func answerOf(t testing.TB, stream grpc.ClientStream) *pb.TxnResponse {
	answer := new(pb.TxnResponse)
	require.NoError(t, stream.RecvMsg(answer))
	return answer
}

// Puts of a stream take effect in order, each with a revision of its own, and a message is answered with that of its
// last put. Messages need not wait for answers.
func TestStreamOfPuts(t *testing.T) {
	eachKind(t, func(t *testing.T, kind func(*Config)) {
		c := startReal(t, 3, kind)
		ctx := testContext(t)
		client := c.client()
		before, err := client.Get(ctx, "a")
		require.NoError(t, err)
		stream := putStreamOf(ctx, t, client)
		const messages, puts = 50, 20
		for m := range messages {
			r := new(pb.TxnRequest)
			for i := range puts {
				r.Success = append(r.Success, putsRequest("k", fmt.Sprint(m*puts+i)).Success...)
			}
			require.NoError(t, stream.SendMsg(r))
		}
		require.NoError(t, stream.CloseSend())
		for m := range messages {
			answer := answerOf(t, stream)
			require.True(t, answer.Succeeded)
			require.Equal(t, before.Header.Revision+int64((m+1)*puts), answer.Header.Revision)
			require.NotZero(t, answer.Header.MemberId)
		}
		require.ErrorIs(t, stream.RecvMsg(new(pb.TxnResponse)), io.EOF)
		for i := range messages * puts {
			at, err := client.Get(ctx, "k", clientv3.WithRev(before.Header.Revision+int64(i)+1))
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(i), string(at.Kvs[0].Value))
		}
	})
}

// A put that fails ends the stream with its place. What was answered before has taken effect.
func TestStreamOfPutsEndsWithAFailure(t *testing.T) {
	c := startReal(t, 1)
	ctx := testContext(t)
	client := c.client()
	stream := putStreamOf(ctx, t, client)
	require.NoError(t, stream.SendMsg(putsRequest("a", "1")))
	answerOf(t, stream)
	failing := putsRequest("b", "1", "c", "1", "d", "1")
	failing.Success[1].GetRequestPut().Lease = 77
	require.NoError(t, stream.SendMsg(failing))
	err := stream.RecvMsg(new(pb.TxnResponse))
	require.Equal(t, codes.NotFound, status.Code(err))
	require.ErrorContains(t, err, "put 1 of the message: etcdserver: requested lease not found")
	got, err := client.Get(ctx, "", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	require.NoError(t, err)
	require.Len(t, got.Kvs, 3, "the others took effect")
}

// Behind a put that is not proposed, none is.
func TestStreamOfPutsEndsWithAPutThatIsNotProposed(t *testing.T) {
	c := startReal(t, 1, func(c *Config) { c.MaxRequestBytes = 1000 })
	ctx := testContext(t)
	client := c.client()
	stream := putStreamOf(ctx, t, client)
	require.NoError(t, stream.SendMsg(putsRequest("a", "1", "b", string(make([]byte, 1000)), "c", "1")))
	require.NoError(t, stream.SendMsg(putsRequest("d", "1")))
	err := stream.RecvMsg(new(pb.TxnResponse))
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.ErrorContains(t, err, "put 1 of the message: etcdserver: request is too large")
	for _, s := range c.servers {
		eventually(t, "all that was proposed", func() bool { return s.metrics.Pending.Load() == 0 })
	}
	got, err := client.Get(ctx, "", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	require.NoError(t, err)
	require.Len(t, got.Kvs, 1)
	require.Equal(t, "a", string(got.Kvs[0].Key))
}

func TestStreamOfPutsRefuses(t *testing.T) {
	c := startReal(t, 1)
	client := c.client()
	deleted := &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{
		RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte("k")}}}
	for name, r := range map[string]*pb.TxnRequest{
		"nothing":      {},
		"a comparison": {Compare: []*pb.Compare{{Key: []byte("k")}}, Success: putsRequest("k", "v").Success},
		"a failure":    {Success: putsRequest("k", "v").Success, Failure: putsRequest("k", "v").Success},
		"a deletion":   {Success: []*pb.RequestOp{deleted}},
		"an answer":    {Success: []*pb.RequestOp{putOp(&pb.PutRequest{Key: []byte("k"), PrevKv: true})}},
		"no key":       putsRequest("k", "v", "", "v"),
	} {
		t.Run(name, func(t *testing.T) {
			stream := putStreamOf(testContext(t), t, client)
			require.NoError(t, stream.SendMsg(r))
			require.Equal(t, codes.InvalidArgument, status.Code(stream.RecvMsg(new(pb.TxnResponse))))
		})
	}
	stream := putStreamOf(metadata.AppendToOutgoingContext(testContext(t), metadataMode, modeAccepted), t, client)
	require.Equal(t, codes.InvalidArgument, status.Code(stream.RecvMsg(new(pb.TxnResponse))))
	got, err := client.Get(testContext(t), "k")
	require.NoError(t, err)
	require.Empty(t, got.Kvs)
}

// Messages with more bytes than the window has are proposed all the same, as answers come.
func TestStreamOfManyPuts(t *testing.T) {
	c := startReal(t, 3)
	ctx := testContext(t)
	client := c.client()
	stream := putStreamOf(ctx, t, client)
	const messages, puts = 12, 900
	value := string(make([]byte, 1000))
	for m := range messages {
		r := new(pb.TxnRequest)
		for i := range puts {
			r.Success = append(r.Success, putsRequest(fmt.Sprintf("many-%d-%d", m, i), value).Success...)
		}
		require.NoError(t, stream.SendMsg(r))
	}
	for range messages {
		answerOf(t, stream)
	}
	got, err := client.Get(ctx, "many", clientv3.WithPrefix(), clientv3.WithCountOnly())
	require.NoError(t, err)
	require.EqualValues(t, messages*puts, got.Count)
}
