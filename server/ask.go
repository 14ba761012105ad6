package server

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/auth"
	"go.etcd.io/etcd/server/v3/lease"

	"github.com/braidlog/braid"
)

// Questions between members: a byte with the kind, the user on whose behalf it is asked (an etcd request header after
// its length) and the request. The member that asks has authenticated the user. The member that answers checks what
// the user may do. The reply begins with a gRPC code; the answer or the error's text follows.
const (
	askRenew      = 'r'
	askTimeToLive = 't'
	askPromote    = 'p'
	askCaughtUp   = 'c'
	askHash       = 'h'
	askKeptHash   = 'k'
	askApplied    = 'a'
	askQuotas     = 'q'
	askReport     = 'o'
	askDrain      = 'd'
)

// askRetry is the longest pause before the member to ask is looked up again.
const askRetry = 20 * time.Millisecond

// errNotTheOne is a member's reply to a question that is for another member.
var errNotTheOne = status.Error(codes.FailedPrecondition, "etcdserver: asked the wrong member")

// asker sends questions to other members, and answers theirs.
type asker struct {
	id       braid.MemberID
	timeout  time.Duration
	started  <-chan struct{} // closed when log is set and questions can be served
	stopping <-chan struct{}
	log      Log
	serve    func(ctx context.Context, request []byte) ([]byte, error)
}

// ask gets the answer to a request from the member that whom returns: directly if it is this one, else over the link.
// If whom returns another member meanwhile, it asks that one, until the request's deadline.
func ask[R proto.Message](ctx context.Context, s *Server, whom func() braid.MemberID, what byte, request proto.Message,
	reply R) (R, error) {
	user, err := s.store.Rights().AuthInfo(ctx)
	if err != nil {
		return reply, toStatus(err)
	}
	question, err := encodeAsk(what, user, request)
	if err != nil {
		return reply, toStatus(err)
	}
	answer, err := s.asker.until(ctx, whom, question)
	if err != nil {
		return reply, err
	}
	return reply, toStatus(proto.Unmarshal(answer, reply))
}

func encodeAsk(what byte, user *auth.AuthInfo, request proto.Message) ([]byte, error) {
	header := &pb.RequestHeader{}
	if user != nil {
		header.Username, header.AuthRevision = user.Username, user.Revision
	}
	out := binary.AppendUvarint([]byte{what}, uint64(proto.Size(header)))
	out, err := proto.MarshalOptions{}.MarshalAppend(out, header)
	if err != nil {
		return nil, err
	}
	return proto.MarshalOptions{}.MarshalAppend(out, request)
}

func decodeAsk(b []byte) (what byte, user *auth.AuthInfo, body []byte, err error) {
	malformed := status.Error(codes.InvalidArgument, "etcdserver: malformed request of a member")
	if len(b) < 2 {
		return 0, nil, nil, malformed
	}
	n, width := binary.Uvarint(b[1:])
	if width <= 0 || n > uint64(len(b)-1-width) {
		return 0, nil, nil, malformed
	}
	header := new(pb.RequestHeader)
	rest := b[1+width:]
	if err := proto.Unmarshal(rest[:n], header); err != nil {
		return 0, nil, nil, malformed
	}
	return b[0], &auth.AuthInfo{Username: header.Username, Revision: header.AuthRevision}, rest[n:], nil
}

func (a *asker) until(ctx context.Context, whom func() braid.MemberID, request []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	last := rpctypes.ErrGRPCNoLeader
	for {
		if to := whom(); to != 0 {
			answer, err := a.member(ctx, to, request)
			if err == nil || !mayDiffer(err) {
				return answer, err
			}
			last = err
		}
		select {
		case <-time.After(askRetry):
		case <-ctx.Done():
			if errors.Is(last, errNotTheOne) {
				last = rpctypes.ErrGRPCLeaderChanged
			}
			return nil, last
		case <-a.stopping:
			return nil, rpctypes.ErrGRPCStopped
		}
	}
}

// mayDiffer reports whether a retry may have another result.
func mayDiffer(err error) bool {
	return errors.Is(err, errNotTheOne) || status.Code(err) == codes.Unavailable
}

func (a *asker) member(ctx context.Context, to braid.MemberID, request []byte) ([]byte, error) {
	if to == a.id {
		return a.serve(ctx, request)
	}
	reply, err := a.log.Ask(ctx, to, request)
	switch {
	case err != nil:
		return nil, status.Error(codes.Unavailable, fmt.Sprintf("etcdserver: asking member %s: %v", to, err))
	case len(reply) == 0:
		return nil, status.Error(codes.Internal, fmt.Sprintf("etcdserver: empty reply of member %s", to))
	case codes.Code(reply[0]) != codes.OK:
		return nil, status.Error(codes.Code(reply[0]), string(reply[1:]))
	}
	return reply[1:], nil
}

// answer answers another member's question. It is the log's Options.Answer.
func (a *asker) answer(ctx context.Context, _ braid.MemberID, request []byte) ([]byte, error) {
	select {
	case <-a.started:
	case <-a.stopping:
		return nil, braid.ErrStopped
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	out, err := a.serve(ctx, request)
	if err != nil {
		st := status.Convert(err)
		return append([]byte{byte(st.Code())}, st.Message()...), nil
	}
	return append([]byte{byte(codes.OK)}, out...), nil
}

func (s *Server) serveAsked(ctx context.Context, request []byte) ([]byte, error) {
	what, user, body, err := decodeAsk(request)
	if err != nil {
		return nil, err
	}
	switch what {
	case askRenew:
		return serveProto(ctx, user, body, new(pb.LeaseKeepAliveRequest), s.lease.renewHere)
	case askTimeToLive:
		return serveProto(ctx, user, body, new(pb.LeaseTimeToLiveRequest), s.lease.timeToLiveHere)
	case askPromote:
		return serveProto(ctx, user, body, new(pb.MemberPromoteRequest), s.cluster.promoteHere)
	case askCaughtUp:
		return serveProto(ctx, user, body, new(pb.MemberPromoteRequest), s.cluster.caughtUpHere)
	case askHash:
		return serveProto(ctx, user, body, new(pb.HashKVRequest), s.hashes.freshHere)
	case askApplied:
		return serveProto(ctx, user, body, new(wrapperspb.UInt64Value), s.early.appliedHere)
	case askQuotas:
		return serveProto(ctx, user, body, new(emptypb.Empty), knowsQuotas)
	case askReport:
		return serveProto(ctx, user, body, new(wrapperspb.BytesValue), s.reportHere)
	case askDrain:
		return serveProto(ctx, user, body, new(wrapperspb.BoolValue), s.drainHere)
	case askKeptHash:
		return serveProto(ctx, user, body, new(pb.HashKVRequest), s.hashes.keptHere)
	}
	return nil, status.Error(codes.Unimplemented, fmt.Sprintf("etcdserver: a member asked for unknown %q", what))
}

func serveProto[Q, A proto.Message](ctx context.Context, user *auth.AuthInfo, body []byte, request Q,
	serve func(context.Context, *auth.AuthInfo, Q) (A, error),
) ([]byte, error) {
	if err := proto.Unmarshal(body, request); err != nil {
		return nil, status.Error(codes.InvalidArgument, "etcdserver: malformed request of a member: "+err.Error())
	}
	answer, err := serve(ctx, user, request)
	switch {
	case errors.Is(err, lease.ErrNotPrimary):
		return nil, errNotTheOne
	case err != nil:
		return nil, toStatus(err)
	}
	return proto.Marshal(answer)
}
