package server

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election"
	epb "go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock"
	lpb "go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"

	"github.com/braidlog/braid/server/internal/metrics"
)

const (
	// streamWorkers run the handlers of gRPC calls. A worker's stack has already grown to the size that a handler
	// needs; a new goroutine's has not. But each collection of garbage halves the stacks of waiting workers, and they
	// take turns, so that each of them grows its stack again: many workers cost memory, and CPU with each collection.
	// Calls that find no worker run each in a new goroutine. With 1,000 clients of three members 64 workers cost 15 %
	// more CPU for a get than 384, which is about the number of calls at a time.
	streamWorkers = 384
	// connBuffer is the size of a connection's read buffer, and of its write buffer while it writes.
	connBuffer = 32 << 10
	// streamWindow and connWindow are how many bytes a client may send before they are read. Fixed
	// windows also save the pings with which gRPC would estimate them.
	streamWindow = 256 << 10
	connWindow   = 8 << 20
	// maxHeaderList bounds the metadata of a call.
	maxHeaderList = 64 << 10
	// frameOverhead is added to the request limit for the message around a request, so
	// that a request a little above it is refused by name and not by gRPC.
	frameOverhead = 512 << 10
)

// wireOptions are the options of the gRPC server that do not depend on what it serves: [ServeBare] has them too.
func (c *Config) wireOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.NumStreamWorkers(streamWorkers),
		grpc.WriteBufferSize(connBuffer),
		grpc.ForceServerCodecV2(codec{}),
		experimental.BufferPool(buffers),
		grpc.InitialWindowSize(streamWindow),
		grpc.InitialConnWindowSize(connWindow),
		grpc.MaxRecvMsgSize(c.largestMessage()),
		grpc.MaxHeaderListSize(maxHeaderList),
		grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.MaxConcurrentStreams(c.MaxConcurrentStreams),
		grpc.ConnectionTimeout(sniffTimeout),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: c.Keepalive.MinTime}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: c.Keepalive.Interval, Timeout: c.Keepalive.Timeout}),
		grpc.WaitForHandlers(true),
	}
}

// grpcOptions are the options of the gRPC server.
func (s *Server) grpcOptions() []grpc.ServerOption {
	return slices.Concat(s.cfg.wireOptions(), []grpc.ServerOption{
		grpc.Creds(greeted{}),
		grpc.ReadBufferSize(0), // meteredConn has one
		grpc.InTapHandle(s.tapIn),
		grpc.UnaryInterceptor(s.interceptUnary),
		grpc.StreamInterceptor(s.interceptStream),
	}, s.tracing.options())
}

// newGRPC makes the gRPC server with all services.
func (s *Server) newGRPC() *grpc.Server {
	g := grpc.NewServer(s.grpcOptions()...)
	s.health = health.NewServer()
	r := registrar{g, s}
	healthpb.RegisterHealthServer(r, s.health)
	pb.RegisterKVServer(r, s.kv)
	pb.RegisterWatchServer(r, s.watch)
	pb.RegisterLeaseServer(r, s.lease)
	pb.RegisterClusterServer(r, s.cluster)
	pb.RegisterAuthServer(r, s.auth)
	pb.RegisterMaintenanceServer(r, s.maintenance)
	epb.RegisterElectionServer(r, v3election.NewElectionServer(s.client))
	lpb.RegisterLockServer(r, v3lock.NewLockServer(s.client))
	r.RegisterService(&adminDesc, s)
	r.RegisterService(&putDesc, s)
	reflection.Register(g)
	s.metrics.Register(g)
	return g
}

// interceptUnary is called for every unary call.
func (s *Server) interceptUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo,
	handler grpc.UnaryHandler) (any, error) {
	count, began := s.metrics.Method(info.FullMethod), time.Now()
	count.Start()
	p := &passage{Context: ctx, began: began}
	ctx = p
	err := s.admit(ctx, false)
	if err == nil && s.self.Load().learner && !servedByLearner(req) {
		err = rpctypes.ErrGRPCNotSupportedForLearner
	}
	if err == nil {
		err = s.fit(info.FullMethod, req)
	}
	if err == nil {
		err = s.rates.take(ctx, req)
	}
	var resp any
	if err == nil {
		resp, err = s.call(ctx, req, info, handler)
	}
	if unfit := s.fit(info.FullMethod, req); unfit != nil && err == nil {
		resp, err = nil, unfit // damage that was found meanwhile may be in it
	}
	if err != nil {
		s.refusals.login(ctx, err)
	}
	took := time.Since(began)
	count.End(req, err, took)
	p.count(s.metrics, took)
	s.tracing.emit(p, took)
	if !mayWait(info.FullMethod) {
		s.slow.note(ctx, info.FullMethod, req, err, began, took)
	}
	return resp, err
}

// call runs the handler of a unary call. Calls that wait for a lock or to be elected may last as long
// as streams, and end when those do.
func (s *Server) call(ctx context.Context, req any, info *grpc.UnaryServerInfo,
	handler grpc.UnaryHandler) (any, error) {
	if !mayWait(info.FullMethod) {
		return handler(ctx, req)
	}
	ctx, cancel := s.streams.enter(ctx, requiresLeader(ctx))
	defer cancel(nil)
	resp, err := handler(ctx, req)
	if err != nil {
		err = endedBy(ctx, err)
	}
	return resp, err
}

// mayWait reports whether calls of a method wait for other clients, so that they may take any time.
func mayWait(method string) bool {
	return method == lpb.Lock_Lock_FullMethodName || method == epb.Election_Campaign_FullMethodName
}

// endedBy is why a call failed: the cause of the end of its context, if the server ended it, or err.
func endedBy(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
		return err
	}
	return cause
}

// admit counts a call by its client's version. It refuses the call if the client requires a leader
// and this member knows none, after it has waited for an election.
func (s *Server) admit(ctx context.Context, stream bool) error {
	version := "unknown"
	if v := metadata.ValueFromIncomingContext(ctx, rpctypes.MetadataClientAPIVersionKey); len(v) > 0 {
		version = v[0]
	}
	if !utf8.ValidString(version) {
		return rpctypes.ErrGRPCInvalidClientAPIVersion
	}
	s.metrics.Client(stream, version)
	if requiresLeader(ctx) {
		return s.awaitLeader(ctx)
	}
	return nil
}

func requiresLeader(ctx context.Context) bool {
	v := metadata.ValueFromIncomingContext(ctx, rpctypes.MetadataRequireLeaderKey)
	return len(v) > 0 && v[0] == rpctypes.MetadataHasLeader
}

// servedByLearner reports whether a learner answers a unary request: only those that promise
// nothing about the rest of the cluster.
func servedByLearner(req any) bool {
	switch r := req.(type) {
	case *pb.StatusRequest, *healthpb.HealthCheckRequest, *pb.HashKVRequest:
		return true
	case *pb.RangeRequest:
		return r.Serializable
	}
	return false
}

// ofItsOwn has the streams that a learner serves: they send the state that it has.
var ofItsOwn = []string{pb.Maintenance_Snapshot_FullMethodName, "/" + adminService + "/" + backupMethod}

// interceptStream is called for every stream.
func (s *Server) interceptStream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo,
	handler grpc.StreamHandler) error {
	if c, ok := ss.Context().Value(callKey{}).(*call); ok {
		if err := c.start(); err != nil {
			return err
		}
		defer c.end()
	}
	count, began := s.metrics.Method(info.FullMethod), time.Now()
	count.Start()
	err := s.runStream(srv, ss, info, handler, count)
	count.End(nil, err, time.Since(began))
	return err
}

func (s *Server) runStream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler,
	count *metrics.Method) error {
	if s.self.Load().learner && !slices.Contains(ofItsOwn, info.FullMethod) {
		return rpctypes.ErrGRPCNotSupportedForLearner
	}
	if err := s.admit(ss.Context(), true); err != nil {
		return err
	}
	if err := s.fit(info.FullMethod, nil); err != nil {
		return err
	}
	ctx, cancel := s.streams.enter(ss.Context(), requiresLeader(ss.Context()))
	defer cancel(nil)
	from, _ := ctx.Value(callKey{}).(*call)
	err := handler(srv, &serverStream{ServerStream: ss, ctx: ctx, call: from, count: count, s: s})
	return toStatus(endedBy(ctx, err))
}

// serverStream counts messages and ends with the server's context, too.
type serverStream struct {
	grpc.ServerStream
	ctx   context.Context
	call  *call // nil: it did not come over a connection of its own
	count *metrics.Method
	s     *Server
}

// Context implements grpc.ServerStream.
func (s *serverStream) Context() context.Context { return s.ctx }

// SendMsg implements grpc.ServerStream.
func (s *serverStream) SendMsg(m any) error {
	if s.s.store.Damage().Err() != nil {
		return errDamaged
	}
	err := s.ServerStream.SendMsg(m)
	s.count.Send(err, s.left())
	return err
}

// left reports whether the client has ended the call, so that it is the reason of errors.
func (s *serverStream) left() bool { return s.ServerStream.Context().Err() != nil }

// RecvMsg implements grpc.ServerStream. Between two calls the server makes the client wait, whose next message may
// have arrived in part.
func (s *serverStream) RecvMsg(m any) error {
	s.call.mark(false)
	err := s.ServerStream.RecvMsg(m)
	s.call.mark(true)
	s.count.Receive(err, s.left())
	return err
}
