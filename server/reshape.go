package server

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/braidlog/braid"
)

// Reshape asks a member to change the number of its cluster's instances.
func Reshape(ctx context.Context, member grpc.ClientConnInterface, instances int) error {
	return callAdmin(ctx, member, reshapeMethod, wrapperspb.UInt32(uint32(instances)), new(emptypb.Empty))
}

func (s *Server) reshape(ctx context.Context, instances *wrapperspb.UInt32Value) (*emptypb.Empty, error) {
	ctx, cancel, err := s.forChange(ctx)
	defer cancel()
	if err != nil {
		return nil, err
	}
	n := int(instances.GetValue())
	if n < 1 || n > braid.MaxInstances {
		return nil, status.Error(codes.InvalidArgument, fmt.Sprintf("braid: %d instances: it is 1 to %d", n,
			braid.MaxInstances))
	}
	if err := s.log.Reshape(ctx, n); err != nil {
		return nil, toStatus(err)
	}
	return new(emptypb.Empty), nil
}
