package server

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"google.golang.org/grpc"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/version"
)

// ServeBare serves the cost of gRPC itself until ctx ends: it answers puts and gets of one key at once, without a log
// and without a store, with the codec and the options of the gRPC server that [Start] makes. A get is answered with the
// value that was put last to this process, whatever its key was, so that answers have the size of a store's. It also
// answers streams of puts, and requests for the status and the members, and no others. Members do not communicate: the
// first of the list reports itself as the leader, for clients that look for one.
//
// It uses these fields of the configuration: ListenClient, whose listeners it closes; Self, Cluster and Members of
// Node; MaxRequestBytes, MaxConcurrentStreams and Keepalive. It serves no HTTP, and no TLS. It returns nil after ctx
// has ended, and else the errors of the listeners.
func ServeBare(ctx context.Context, c Config) error {
	c.completeWire()
	g := grpc.NewServer(append(c.wireOptions(), grpc.ReadBufferSize(connBuffer))...)
	b := &bare{config: &c}
	pb.RegisterKVServer(g, b)
	g.RegisterService(&putDesc, b)
	pb.RegisterClusterServer(g, bareCluster{bare: b})
	pb.RegisterMaintenanceServer(g, bareMaintenance{bare: b})
	stop := context.AfterFunc(ctx, g.Stop)
	defer stop()
	ended := make(chan error)
	for _, l := range c.ListenClient {
		go func() { ended <- g.Serve(l) }()
	}
	var errs []error
	for range c.ListenClient {
		if err := <-ended; !errors.Is(err, grpc.ErrServerStopped) {
			errs = append(errs, err)
		}
		g.Stop() // one listener failed, or all are stopped
	}
	return errors.Join(errs...)
}

// bare is the key-value service of ServeBare.
type bare struct {
	pb.UnimplementedKVServer
	config   *Config
	revision atomic.Int64
	last     atomic.Pointer[pb.PutRequest]
}

func (b *bare) header(revision int64) *pb.ResponseHeader {
	n := &b.config.Node
	return &pb.ResponseHeader{ClusterId: uint64(n.Cluster), MemberId: uint64(n.Self), Revision: revision, RaftTerm: 1}
}

// Put implements pb.KVServer.
func (b *bare) Put(_ context.Context, r *pb.PutRequest) (*pb.PutResponse, error) {
	b.last.Store(r)
	return &pb.PutResponse{Header: b.header(b.revision.Add(1))}, nil
}

// Range implements pb.KVServer.
func (b *bare) Range(_ context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	now := b.revision.Load()
	answer := &pb.RangeResponse{Header: b.header(now)}
	if put := b.last.Load(); put != nil {
		answer.Count = 1
		answer.Kvs = []*mvccpb.KeyValue{
			{Key: r.Key, Value: put.Value, CreateRevision: now, ModRevision: now, Version: 1}}
	}
	return answer, nil
}

// puts implements putServer.
func (b *bare) puts(stream grpc.ServerStream) error {
	for {
		r := new(pb.TxnRequest)
		if err := stream.RecvMsg(r); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		puts, err := putsOf(r)
		if err != nil {
			return err
		}
		b.last.Store(puts[len(puts)-1])
		answer := &pb.TxnResponse{Header: b.header(b.revision.Add(int64(len(puts)))), Succeeded: true}
		if err := stream.SendMsg(answer); err != nil {
			return err
		}
	}
}

// bareCluster is the service for members.
type bareCluster struct {
	pb.UnimplementedClusterServer
	bare *bare
}

// MemberList implements pb.ClusterServer.
func (c bareCluster) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	answer := &pb.MemberListResponse{Header: c.bare.header(0)}
	for _, m := range c.bare.config.Node.Members {
		answer.Members = append(answer.Members, &pb.Member{ID: uint64(m.ID), Name: m.Name, PeerURLs: m.PeerURLs})
	}
	return answer, nil
}

// bareMaintenance is the service for the status.
type bareMaintenance struct {
	pb.UnimplementedMaintenanceServer
	bare *bare
}

// Status implements pb.MaintenanceServer.
func (m bareMaintenance) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	b := m.bare
	return &pb.StatusResponse{Header: b.header(b.revision.Load()), Version: version.Version, RaftTerm: 1,
		Leader: uint64(b.config.Node.Members[0].ID)}, nil
}
