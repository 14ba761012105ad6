package server

import (
	"context"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/braidlog/braid"
)

// A bare server answers puts and gets without a log, refuses everything else, and ends with its context.
func TestServeBare(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	config := Config{ListenClient: []net.Listener{l}, MaxRequestBytes: 1 << 20, Node: braid.Options{Self: 2, Cluster: 7,
		Members: []braid.Member{{ID: 1, Name: "m1"}, {ID: 2, Name: "m2"}}}}
	ended := make(chan error)
	go func() { ended <- ServeBare(ctx, config) }()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{l.Addr().String()}})
	require.NoError(t, err)
	defer client.Close()
	none, err := client.Get(ctx, "a")
	require.NoError(t, err)
	require.Empty(t, none.Kvs)
	put, err := client.Put(ctx, "a", "value")
	require.NoError(t, err)
	require.Equal(t, int64(1), put.Header.Revision)
	require.Equal(t, uint64(2), put.Header.MemberId)
	require.Equal(t, uint64(7), put.Header.ClusterId)
	got, err := client.Get(ctx, "another")
	require.NoError(t, err)
	require.Len(t, got.Kvs, 1)
	require.Equal(t, "another", string(got.Kvs[0].Key))
	require.Equal(t, "value", string(got.Kvs[0].Value))
	_, err = client.Delete(ctx, "a")
	require.Equal(t, codes.Unimplemented, status.Code(err))
	_, err = client.Put(ctx, "a", string(make([]byte, 2<<20)))
	require.Error(t, err, "the limit of requests is that of a member")
	stream, err := client.ActiveConnection().NewStream(ctx, &putDesc.Streams[0], PutStreamMethod)
	require.NoError(t, err)
	put2 := &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("b"),
		Value: []byte("streamed")}}}
	for message := range int64(2) {
		require.NoError(t, stream.SendMsg(&pb.TxnRequest{Success: []*pb.RequestOp{put2, put2}}))
		answer := new(pb.TxnResponse)
		require.NoError(t, stream.RecvMsg(answer))
		require.Equal(t, 1+2*(message+1), answer.Header.Revision)
	}
	require.NoError(t, stream.CloseSend())
	require.ErrorIs(t, stream.RecvMsg(new(pb.TxnResponse)), io.EOF)
	got, err = client.Get(ctx, "b")
	require.NoError(t, err)
	require.Equal(t, "streamed", string(got.Kvs[0].Value))
	members, err := client.MemberList(ctx)
	require.NoError(t, err)
	require.Len(t, members.Members, 2)
	s, err := client.Status(ctx, l.Addr().String())
	require.NoError(t, err)
	require.Equal(t, uint64(1), s.Leader)
	cancel()
	require.NoError(t, <-ended)
	require.ErrorContains(t, ServeBare(t.Context(), config), "closed")
}
