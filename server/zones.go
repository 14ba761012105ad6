package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/braidlog/braid"
)

// SetZones asks a member to change the zones of members, given by name or id, all in one change: a cluster with quorums
// by zones, whose voters have none, cannot give them one by one. It returns when the change is active on that member.
// A refusal has the code FailedPrecondition, or Unavailable if a retry may succeed.
func SetZones(ctx context.Context, member grpc.ClientConnInterface, zones map[string]string) error {
	q := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for name, zone := range zones {
		q.Fields[name] = structpb.NewStringValue(zone)
	}
	return callAdmin(ctx, member, zonesMethod, q, new(emptypb.Empty))
}

func (s *Server) setZones(ctx context.Context, zones *structpb.Struct) (*emptypb.Empty, error) {
	ctx, cancel, err := s.forChange(ctx)
	defer cancel()
	if err != nil {
		return nil, err
	}
	changes, err := zoneChanges(s.log.Status().Members, zones.GetFields())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, "braid: "+err.Error())
	}
	if err := s.log.ChangeMembers(ctx, changes...); err != nil {
		return nil, toStatus(err)
	}
	return new(emptypb.Empty), nil
}

// zoneChanges are the changes of members, given by name or id, to these zones.
func zoneChanges(members []braid.Member, zones map[string]*structpb.Value) (changes []braid.Change, err error) {
	for key, zone := range zones {
		i := memberAt(members, key)
		switch {
		case i < 0:
			return nil, fmt.Errorf("there is no member %q", key)
		case zone.GetStringValue() == "":
			return nil, fmt.Errorf("member %s: a zone is changed to another one, and never cleared", key)
		}
		changes = append(changes, braid.Change{Kind: braid.UpdateMember,
			Member: braid.Member{ID: members[i].ID, Zone: zone.GetStringValue()}})
	}
	slices.SortFunc(changes, func(a, b braid.Change) int { return cmp.Compare(a.Member.ID, b.Member.ID) })
	return changes, nil
}
