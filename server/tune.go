package server

import (
	"context"
	"encoding/json"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/braidlog/braid"
)

// Tuned has the settings of a cluster, as a member has them.
type Tuned struct {
	Profile  braid.Profile   `json:"profile"`
	Settings []braid.Tunable `json:"settings"`
}

// Tune asks a member to change settings of its cluster, and returns the settings after the change. Without any setting
// in t.Set nothing is changed: the settings are those that the member has applied, and are shown without a leader, too.
// A refusal has the code InvalidArgument or FailedPrecondition, Aborted if another profile is active than the one that
// t.Version names, or Unavailable if a retry may succeed.
func Tune(ctx context.Context, member grpc.ClientConnInterface, t braid.Tuning) (Tuned, error) {
	q, answer, tuned := new(structpb.Struct), new(structpb.Struct), Tuned{}
	if err := convert(t, q); err != nil {
		return tuned, err
	}
	if err := callAdmin(ctx, member, tuneMethod, q, answer); err != nil {
		return tuned, err
	}
	b, err := protojson.Marshal(answer)
	if err == nil {
		err = json.Unmarshal(b, &tuned)
	}
	return tuned, err
}

// convert converts a value to a message with the same JSON.
func convert(from any, to *structpb.Struct) error {
	b, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return protojson.Unmarshal(b, to)
}

func (s *Server) tune(ctx context.Context, q *structpb.Struct) (*structpb.Struct, error) {
	var t braid.Tuning
	b, err := protojson.Marshal(q)
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, "braid: tune: "+err.Error())
	}
	var tuned Tuned
	if len(t.Set) > 0 || t.Version > 0 {
		tuned.Profile, err = s.changeProfile(ctx, t)
	} else if err = s.needAdminHere(ctx); err == nil {
		tuned.Profile = s.log.Status().Profile
	}
	if err != nil {
		return nil, err
	}
	if len(t.Set) > 0 {
		s.logger.Info("the settings are changed", "profile", tuned.Profile.Version, "set", t.Set)
	}
	tuned.Settings = s.log.Tunables()
	answer := new(structpb.Struct)
	if err := convert(&tuned, answer); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return answer, nil
}

func (s *Server) changeProfile(ctx context.Context, t braid.Tuning) (braid.Profile, error) {
	ctx, cancel, err := s.forChange(ctx)
	defer cancel()
	if err != nil {
		return braid.Profile{}, err
	}
	p, err := s.log.Tune(ctx, t)
	if err != nil {
		return p, tuneStatus(err)
	}
	return p, nil
}

// tuneStatus is the status of a change of settings that was not made.
func tuneStatus(err error) error {
	var why *braid.TuneError
	known := errors.As(err, &why)
	switch {
	case errors.Is(err, braid.ErrProfileReplaced):
		return status.Error(codes.Aborted, err.Error())
	case errors.Is(err, braid.ErrNotTunable):
		return status.Error(codes.InvalidArgument, err.Error())
	case known && why.Retry:
		return status.Error(codes.Unavailable, err.Error()+"; a retry may succeed")
	case known:
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	return toStatus(err)
}
