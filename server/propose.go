package server

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/store"
)

// order replicates a command and returns the result of applying it here. It never waits longer than the server's
// request timeout.
func (s *Server) order(ctx context.Context, e *store.Encoded, o braid.ProposeOptions) (*store.Result, error) {
	answer, err := s.await(ctx, e, o)
	if err != nil {
		return nil, err
	}
	result, err := resultOf(answer)
	if err != nil {
		return nil, s.failed(err)
	}
	return result, nil
}

// resultOf returns the result of applying a command.
func resultOf(answer any) (*store.Result, error) {
	result, ok := answer.(*store.Result)
	if !ok {
		return nil, fmt.Errorf("%w: applied without a result", braid.ErrResultUnknown)
	}
	return result, nil
}

// await replicates a command, after those of the call's tokens, and returns the answer.
func (s *Server) await(ctx context.Context, e *store.Encoded, o braid.ProposeOptions) (any, error) {
	if err := s.checkSize(e); err != nil {
		return nil, err
	}
	tokens, err := tokensOf(ctx)
	if err != nil {
		return nil, err
	}
	o.Stages = passageOf(ctx).writes()
	s.metrics.Pending.Add(1)
	defer s.metrics.Pending.Add(-1)
	if len(tokens) > 0 {
		s.metrics.Tokens.Add(1)
		o.After = tokens
		within, cancel := context.WithTimeout(ctx, s.timeout)
		defer cancel()
		answer, err := s.log.ProposeWith(within, e.Command, e.Body, o)
		if err != nil {
			passageOf(ctx).fails(err)
			return nil, s.failed(err)
		}
		return answer, nil
	}
	o.Timeout = s.timeout
	answer, err := s.log.ProposeWith(ctx, e.Command, e.Body, o)
	passageOf(ctx).fails(err)
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil:
		err = ctx.Err()
	case errors.Is(err, braid.ErrNotSent): // clients of etcd get the same error whether it may take effect or not
		err = braid.ErrMaybeCommitted
	}
	return nil, s.failed(err)
}

// checkSize refuses a command that is too large.
func (s *Server) checkSize(e *store.Encoded) error {
	if len(e.Command)+len(e.Body) > s.cfg.MaxRequestBytes {
		return rpctypes.ErrGRPCRequestTooLarge
	}
	return nil
}

func (s *Server) failed(err error) error {
	s.metrics.Failed.Add(1)
	if errors.Is(err, braid.ErrMaybeCommitted) && !s.self.Load().led {
		return rpctypes.ErrGRPCTimeoutDueToLeaderFail
	}
	return toStatus(err)
}

// propose encodes and orders a request and returns its response.
func propose[R proto.Message](ctx context.Context, s *Server, r *pb.InternalRaftRequest) (R, error) {
	if err := s.mayPropose(ctx, r); err != nil {
		var none R
		return none, err
	}
	return proposeAs[R](ctx, s, r, braid.ProposeOptions{})
}

// proposeAs is propose with options, of a request whose user was found to have the rights.
func proposeAs[R proto.Message](ctx context.Context, s *Server, r *pb.InternalRaftRequest,
	o braid.ProposeOptions) (R, error) {
	var none R
	e, err := s.store.Encode(ctx, r)
	if err != nil {
		return none, toStatus(err)
	}
	result, err := s.order(ctx, &e, o)
	if err == nil && errors.Is(result.Err, store.ErrUnresolved) {
		result, err = s.orderResolved(ctx, &e, r)
	}
	if err != nil {
		return none, err
	}
	if result.Err != nil {
		return none, toStatus(result.Err)
	}
	resp, ok := result.Resp.(R)
	if !ok {
		return none, toStatus(fmt.Errorf("etcdserver: a %T in answer to a request", result.Resp))
	}
	if err := s.store.Answer(ctx, &e, resp); err != nil {
		return none, toStatus(fmt.Errorf("the request took effect, but not all of the answer is at hand: %w", err))
	}
	return resp, nil
}

// orderResolved orders a transaction that depends on which of two large values is greater. It
// compares the values here; the result holds if nothing changes until the transaction is applied.
func (s *Server) orderResolved(ctx context.Context, e *store.Encoded,
	r *pb.InternalRaftRequest) (*store.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for {
		if err := s.readable(ctx, false); err != nil {
			return nil, err
		}
		var err error
		if *e, err = s.store.EncodeResolved(ctx, r); err != nil {
			return nil, toStatus(err)
		}
		result, err := s.order(ctx, e, braid.ProposeOptions{})
		if err != nil || !errors.Is(result.Err, store.ErrUnresolved) {
			return result, err
		}
	}
}

// proposeSpace is propose for a request that makes the database grow.
func proposeSpace[R proto.Message](ctx context.Context, s *Server, r *pb.InternalRaftRequest) (R, error) {
	return proposeSpaceAs[R](ctx, s, r, braid.ProposeOptions{})
}

// proposeSpaceAs is proposeSpace with options.
func proposeSpaceAs[R proto.Message](ctx context.Context, s *Server, r *pb.InternalRaftRequest,
	o braid.ProposeOptions) (R, error) {
	var none R
	if err := s.mayPropose(ctx, r); err != nil {
		return none, err
	}
	if err := s.checkSpace(ctx, r); err != nil {
		return none, err
	}
	return proposeAs[R](ctx, s, r, o)
}

// checkSpace refuses a request that exceeds a quota. This member may lag behind deletions, so before it refuses a
// request for the quota of a prefix, it checks again behind a read barrier.
func (s *Server) checkSpace(ctx context.Context, r *pb.InternalRaftRequest) error {
	err := s.store.CheckQuota(r)
	if errors.As(err, new(*store.PrefixQuotaError)) {
		if err := s.readBarrier(ctx); err != nil {
			return toStatus(err)
		}
		err = s.store.CheckQuota(r)
	}
	return toStatus(err)
}
