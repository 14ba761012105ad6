package server

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"

	"go.etcd.io/etcd/server/v3/auth"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/store"
)

// PrefixQuota bounds the keys with a prefix, on all members. A bound of 0 is none.
type PrefixQuota = store.PrefixQuota

// PrefixUsage is a quota and what is used of it.
type PrefixUsage = store.PrefixUsage

// prefixUsages is the answer to questions about quotas.
type prefixUsages struct {
	Quotas []PrefixUsage `json:"quotas"`
}

// SetPrefixQuota asks a member to set the quota of a prefix, or to remove it, if it has no bound. It returns all quotas
// when the change is active on all members and the keys are counted, which takes the longer the more there are. What is
// used already may be more than the quota: then keys with the prefix can be deleted, and made smaller. A refusal has
// the code FailedPrecondition, or Unavailable if a retry may succeed. If ctx ends, the quota may be set, and a retry is
// safe.
func SetPrefixQuota(ctx context.Context, member grpc.ClientConnInterface, q PrefixQuota) ([]PrefixUsage, error) {
	var answer prefixUsages
	err := askAdmin(ctx, member, setQuotaMethod, q, &answer)
	return answer.Quotas, err
}

// PrefixQuotas asks a member for the quotas of prefixes, by prefix.
func PrefixQuotas(ctx context.Context, member grpc.ClientConnInterface) ([]PrefixUsage, error) {
	answer := new(structpb.Struct)
	if err := callAdmin(ctx, member, quotasMethod, new(emptypb.Empty), answer); err != nil {
		return nil, err
	}
	var usages prefixUsages
	err := fromStruct(answer, &usages)
	return usages.Quotas, err
}

func (s *Server) prefixQuotas(ctx context.Context, _ *emptypb.Empty) (*structpb.Struct, error) {
	if err := s.needAdmin(ctx); err != nil {
		return nil, err
	}
	return toStruct(prefixUsages{s.store.PrefixQuotas()})
}

func (s *Server) setPrefixQuota(ctx context.Context, question *structpb.Struct) (*structpb.Struct, error) {
	ctx, cancel, err := s.forChange(ctx)
	defer cancel()
	if err != nil {
		return nil, err
	}
	var q PrefixQuota
	if err = fromStruct(question, &q); err == nil {
		err = q.Check()
	}
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, "braid: "+err.Error())
	}
	if err := s.allKnowQuotas(ctx); err != nil {
		return nil, err
	}
	command, err := store.QuotaCommand(q)
	if err != nil {
		return nil, toStatus(err)
	}
	result, err := s.order(ctx, &store.Encoded{Command: command}, braid.ProposeOptions{})
	if err == nil {
		err = result.Err
	}
	if err != nil {
		return nil, toStatus(err)
	}
	s.logger.Info("quota of a prefix changed", "prefix", q.Prefix, "bytes", q.Bytes, "keys", q.Keys)
	if err := s.awaitQuota(ctx, q.Prefix); err != nil {
		return nil, toStatus(fmt.Errorf("the quota is set, but may not hold for everything yet: %w", err))
	}
	return toStruct(prefixUsages{s.store.PrefixQuotas()})
}

// awaitQuota returns when a quota that was applied here holds: all keys are counted, and no member answers a put of
// such a key any more before it is applied.
func (s *Server) awaitQuota(ctx context.Context, prefix string) error {
	if s.log.MayAnswerEarly() {
		if err := s.early.settle(ctx, s.store.Applied()); err != nil {
			return err
		}
	}
	return s.store.AwaitCounted(ctx, prefix)
}

// allKnowQuotas asks all members whether they know quotas: one of an earlier version would apply what others refuse.
func (s *Server) allKnowQuotas(ctx context.Context) error {
	question, err := encodeAsk(askQuotas, nil, new(emptypb.Empty))
	if err != nil {
		return toStatus(err)
	}
	for _, m := range s.log.Status().Members {
		_, err := s.asker.member(ctx, m.ID, question)
		if status.Code(err) == codes.Unimplemented {
			return status.Error(codes.FailedPrecondition,
				fmt.Sprintf("braid: member %s knows no quotas of prefixes: update it first", m.ID))
		}
		if err != nil {
			return status.Error(codes.Unavailable, fmt.Sprintf("braid: whether member %s knows quotas: %v", m.ID, err))
		}
	}
	return nil
}

// knowsQuotas answers another member.
func knowsQuotas(context.Context, *auth.AuthInfo, *emptypb.Empty) (*emptypb.Empty, error) {
	return new(emptypb.Empty), nil
}
