package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"go.etcd.io/etcd/client/pkg/v3/types"

	"github.com/braidlog/braid"
)

// Replacement names a member that is down and will not come back, and the place of the new one.
type Replacement struct {
	Member   string   `json:"member"`    // its name, or its id in hexadecimal
	PeerURLs []string `json:"peer_urls"` // of the new member; none: those of the one that it replaces
}

// Replaced is the outcome of a replacement.
type Replaced struct {
	Removed  string   `json:"removed"` // id, in hexadecimal, as the next one
	Added    string   `json:"added"`
	Name     string   `json:"name"` // of the removed member
	PeerURLs []string `json:"peer_urls"`
	// Others are the remaining members, each NAME=URL, as --initial-cluster has them.
	Others []string `json:"others"`
}

// Replace asks a member to remove one that is down and to add another one in its place, in one change: the new member
// replicates as a learner, and becomes a voter by itself once it has caught up. It returns when the change is active on
// the member that was asked. A member that answers is not replaced. A refusal has the code FailedPrecondition, or
// Unavailable if a retry may succeed.
func Replace(ctx context.Context, member grpc.ClientConnInterface, r Replacement) (done Replaced, err error) {
	err = askAdmin(ctx, member, replaceMethod, r, &done)
	return done, err
}

func (s *Server) replaceMember(ctx context.Context, question *structpb.Struct) (*structpb.Struct, error) {
	ctx, cancel, err := s.forChange(ctx)
	defer cancel()
	if err != nil {
		return nil, err
	}
	var r Replacement
	if err := fromStruct(question, &r); err != nil {
		return nil, status.Error(codes.InvalidArgument, "braid: "+err.Error())
	}
	return s.cluster.replace(ctx, &r)
}

func (c *clusterService) replace(ctx context.Context, r *Replacement) (*structpb.Struct, error) {
	old, err := c.replaceable(r)
	if err != nil {
		return nil, err
	}
	urls := old.PeerURLs
	if len(r.PeerURLs) > 0 {
		valid, err := types.NewURLs(r.PeerURLs)
		if err != nil {
			return nil, status.Error(codes.InvalidArgument, "braid: peer URLs: "+err.Error())
		}
		urls = valid.StringSlice()
	}
	id := JoinedMemberID(urls, c.s.cfg.ClusterToken, append(c.removed(), old.ID)...)
	added := braid.Member{ID: id, PeerURLs: urls}
	removal := braid.Change{Kind: braid.RemoveMember, Member: braid.Member{ID: old.ID}}
	if err := c.change(ctx, removal, braid.Change{Kind: braid.AddVoter, Member: added}); err != nil {
		return nil, err
	}
	done := Replaced{Removed: old.ID.String(), Added: added.ID.String(), Name: old.Name, PeerURLs: urls,
		Others: startedURLs(c.s.log.Status().Members, added.ID)}
	return toStruct(done)
}

// replaceable is the member to replace, if it does not answer.
func (c *clusterService) replaceable(r *Replacement) (*braid.Member, error) {
	members := c.s.log.Status().Members
	i := memberAt(members, r.Member)
	if i < 0 {
		return nil, status.Errorf(codes.FailedPrecondition,
			"braid: there is no member %q%s", r.Member, unstarted(members))
	}
	old := &members[i]
	switch {
	case c.reconfig().answers(old.ID):
		return nil, status.Errorf(codes.FailedPrecondition, "braid: member %s answers: stop it before it is replaced",
			r.Member)
	case old.Learner:
		return nil, status.Errorf(codes.FailedPrecondition,
			"braid: member %s is a learner: remove it and add another one", r.Member)
	}
	return old, c.mayRemoveStrictly(old.ID)
}

// memberAt is the index of a member by its name or id, or -1.
func memberAt(members []braid.Member, key string) int {
	return slices.IndexFunc(members, func(m braid.Member) bool {
		return key != "" && m.Name == key || m.ID.String() == key
	})
}

// unstarted names the members that were added and have not started, for a replacement that was made before.
func unstarted(members []braid.Member) string {
	var waiting []string
	for i := range members {
		if m := &members[i]; m.Name == "" {
			waiting = append(waiting, fmt.Sprintf("%s at %s", m.ID, strings.Join(m.PeerURLs, ",")))
		}
	}
	if len(waiting) == 0 {
		return ""
	}
	return "; added and not started: " + strings.Join(waiting, "; ")
}

// startedURLs are, each as NAME=URL, the started members without one of them.
func startedURLs(members []braid.Member, without braid.MemberID) (out []string) {
	for i := range members {
		if members[i].ID == without || members[i].Name == "" {
			continue
		}
		for _, url := range members[i].PeerURLs {
			out = append(out, members[i].Name+"="+url)
		}
	}
	return out
}
