package server

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/braidlog/braid"
)

// Switch asks a member to change the protocol of its cluster, and returns the profile after the change. A refusal has
// one of the codes that Tune has.
func Switch(ctx context.Context, member grpc.ClientConnInterface, to braid.Switch) (braid.Profile, error) {
	var p braid.Profile
	err := askAdmin(ctx, member, switchMethod, to, &p)
	return p, err
}

// PlanSwitch asks a member what Switch would do. Nothing is changed. The codes of refusals are those of Switch.
func PlanSwitch(ctx context.Context, member grpc.ClientConnInterface, to braid.Switch) (braid.SwitchPlan, error) {
	var p braid.SwitchPlan
	err := askAdmin(ctx, member, planMethod, to, &p)
	return p, err
}

func (s *Server) switchTo(ctx context.Context, q *structpb.Struct) (*structpb.Struct, error) {
	return answerSwitch(ctx, s, q, s.log.Switch)
}

func (s *Server) planSwitch(ctx context.Context, q *structpb.Struct) (*structpb.Struct, error) {
	return answerSwitch(ctx, s, q, s.log.PlanSwitch)
}

// answerSwitch answers a question about a switch, if the caller may ask it.
func answerSwitch[A any](
	ctx context.Context, s *Server, q *structpb.Struct, do func(context.Context, braid.Switch) (A, error),
) (*structpb.Struct, error) {
	var to braid.Switch
	if err := fromStruct(q, &to); err != nil {
		return nil, status.Error(codes.InvalidArgument, "braid: switch: "+err.Error())
	}
	ctx, cancel, err := s.forChange(ctx)
	defer cancel()
	if err != nil {
		return nil, err
	}
	answer, err := do(ctx, to)
	if err != nil {
		return nil, tuneStatus(err)
	}
	return toStruct(answer)
}
