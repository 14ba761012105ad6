package server

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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
	var tuned Tuned
	err := askAdmin(ctx, member, tuneMethod, t, &tuned)
	return tuned, err
}

func (s *Server) tune(ctx context.Context, q *structpb.Struct) (*structpb.Struct, error) {
	var t braid.Tuning
	err := fromStruct(q, &t)
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
	tuned.Settings = s.log.Tunables()
	return toStruct(&tuned)
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

// tuneStatus is the status of a change of settings, or of the protocol, that was not made.
func tuneStatus(err error) error {
	var tune *braid.TuneError
	var to *braid.SwitchError
	known, retry := false, false
	switch {
	case errors.As(err, &tune):
		known, retry = true, tune.Retry
	case errors.As(err, &to):
		known, retry = true, to.Retry
	}
	switch {
	case errors.Is(err, braid.ErrProfileReplaced):
		return status.Error(codes.Aborted, err.Error())
	case errors.Is(err, braid.ErrNotTunable):
		return status.Error(codes.InvalidArgument, err.Error())
	case retry:
		return status.Error(codes.Unavailable, err.Error()+"; a retry may succeed")
	case known:
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	return toStatus(err)
}
