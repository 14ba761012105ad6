package server

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"go.etcd.io/etcd/server/v3/auth"

	"github.com/braidlog/braid"
)

// Drain names a member that is to lead nothing, so that it can be stopped, or that may lead again.
type Drain struct {
	Member string `json:"member"` // its name, or its id in hexadecimal
	Undo   bool   `json:"undo"`
}

// SetDrain asks a member to pass a Drain on to the member that it names. It returns once that member has begun to hand
// over; [Server.Status] shows when it leads nothing any more. The drain ends with the process. A refusal has the code
// FailedPrecondition, or Unavailable if a retry may succeed.
func SetDrain(ctx context.Context, member grpc.ClientConnInterface, d Drain) error {
	return askAdmin(ctx, member, drainMethod, d, new(struct{}))
}

func (s *Server) drainMember(ctx context.Context, question *structpb.Struct) (*structpb.Struct, error) {
	ctx, cancel, err := s.forChange(ctx)
	defer cancel()
	if err != nil {
		return nil, err
	}
	var d Drain
	if err := fromStruct(question, &d); err != nil {
		return nil, status.Error(codes.InvalidArgument, "braid: "+err.Error())
	}
	members := s.log.Status().Members
	i := memberAt(members, d.Member)
	if i < 0 {
		return nil, status.Errorf(codes.FailedPrecondition, "braid: there is no member %q", d.Member)
	}
	whom := func() braid.MemberID { return members[i].ID }
	_, err = ask(ctx, s, whom, askDrain, wrapperspb.Bool(!d.Undo), new(emptypb.Empty))
	if err != nil {
		return nil, err
	}
	return toStruct(struct{}{})
}

// drainHere makes this member lead nothing, or lets it lead again. The member that asks has checked the user.
func (s *Server) drainHere(_ context.Context, _ *auth.AuthInfo, on *wrapperspb.BoolValue) (*emptypb.Empty, error) {
	s.log.Drain(on.GetValue())
	return new(emptypb.Empty), nil
}
