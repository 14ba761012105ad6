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

// The only service that etcd does not have. Its methods use Google's well-known messages, so no
// code needs to be generated.
const (
	adminService  = "braid.Admin"
	reshapeMethod = "Reshape"
)

// adminServer is the service braid.Admin.
type adminServer interface {
	// reshape changes the number of instances, and returns when the new number is active here.
	reshape(ctx context.Context, instances *wrapperspb.UInt32Value) (*emptypb.Empty, error)
}

var adminDesc = grpc.ServiceDesc{
	ServiceName: adminService,
	HandlerType: (*adminServer)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: reshapeMethod,
		Handler: func(srv any, ctx context.Context, decode func(any) error,
			intercept grpc.UnaryServerInterceptor) (any, error) {
			instances := new(wrapperspb.UInt32Value)
			if err := decode(instances); err != nil {
				return nil, err
			}
			info := &grpc.UnaryServerInfo{Server: srv, FullMethod: "/" + adminService + "/" + reshapeMethod}
			return intercept(ctx, instances, info, func(ctx context.Context, req any) (any, error) {
				return srv.(adminServer).reshape(ctx, req.(*wrapperspb.UInt32Value))
			})
		},
	}},
}

// Reshape asks a member to change the number of its cluster's instances.
func Reshape(ctx context.Context, member grpc.ClientConnInterface, instances int) error {
	return member.Invoke(ctx, "/"+adminService+"/"+reshapeMethod, wrapperspb.UInt32(uint32(instances)), new(emptypb.Empty))
}

func (s *Server) reshape(ctx context.Context, instances *wrapperspb.UInt32Value) (*emptypb.Empty, error) {
	if err := s.needAdmin(ctx); err != nil {
		return nil, err
	}
	n := int(instances.GetValue())
	switch {
	case s.log.Status().Order != braid.OrderNiagara:
		return nil, status.Error(codes.FailedPrecondition,
			"braid: this cluster's log is one instance's, not woven: it does not run --protocol niagara")
	case n < 1 || n > braid.MaxInstances:
		return nil, status.Error(codes.InvalidArgument, fmt.Sprintf("braid: %d instances: it is 1 to %d", n,
			braid.MaxInstances))
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.log.Reshape(ctx, n); err != nil {
		return nil, toStatus(err)
	}
	s.logger.Info("the log is reshaped", "instances", n)
	return new(emptypb.Empty), nil
}
