package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/auth"

	"github.com/braidlog/braid"
)

// clusterService implements pb.ClusterServer on the membership that the log keeps.
type clusterService struct {
	pb.UnsafeClusterServer
	s *Server
}

// JoinedMemberID is the id of a member that is added while the cluster runs. The client that adds
// it gives only its peer URLs, so the id is derived from them. Ids are never used again: the n-th
// successor of a removed member has another id under the same URLs. A member that joins finds its
// id in the list of members.
func JoinedMemberID(peerURLs []string, token string, removed ...braid.MemberID) braid.MemberID {
	sorted := slices.Clone(peerURLs)
	slices.Sort(sorted)
	name := "joined " + strings.Join(sorted, ",")
	id := braid.MemberIDOf(name, token)
	for n := 2; slices.Contains(removed, id); n++ {
		id = braid.MemberIDOf(fmt.Sprintf("%s %d", name, n), token)
	}
	return id
}

// MemberList implements pb.ClusterServer.
func (c *clusterService) MemberList(ctx context.Context, r *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	if err := c.s.readable(ctx, !r.Linearizable); err != nil {
		return nil, err
	}
	if err := c.s.store.Rights().RequireAuth(ctx); err != nil {
		return nil, toStatus(err)
	}
	return &pb.MemberListResponse{Header: c.header(), Members: c.members()}, nil
}

// MemberAdd implements pb.ClusterServer.
func (c *clusterService) MemberAdd(ctx context.Context, r *pb.MemberAddRequest) (*pb.MemberAddResponse, error) {
	if err := c.s.needAdmin(ctx); err != nil {
		return nil, err
	}
	urls, err := types.NewURLs(r.PeerURLs)
	if err != nil {
		return nil, rpctypes.ErrGRPCMemberBadURLs
	}
	m := braid.Member{ID: JoinedMemberID(urls.StringSlice(), c.s.cfg.ClusterToken, c.removed()...),
		PeerURLs: urls.StringSlice(), Learner: r.IsLearner}
	if err := c.mayAdd(&m); err != nil {
		return nil, err
	}
	kind := braid.AddVoter
	if r.IsLearner {
		kind = braid.AddLearner
	}
	if err := c.change(ctx, braid.Change{Kind: kind, Member: m}); err != nil {
		return nil, err
	}
	return &pb.MemberAddResponse{Header: c.header(), Member: toProtoMember(&m), Members: c.members()}, nil
}

// removed are the ids of removed members, which are never used again.
func (c *clusterService) removed() []braid.MemberID {
	if st := c.s.log.Status(); len(st.Instances) > 0 {
		return st.Instances[0].Config.Removed
	}
	return nil
}

func (c *clusterService) mayAdd(m *braid.Member) error {
	if err := c.mayAddStrictly(m); err != nil {
		return err
	}
	st := c.s.log.Status()
	learners := 0
	for i := range st.Members {
		o := &st.Members[i]
		if o.ID == m.ID {
			return rpctypes.ErrGRPCMemberExist
		}
		if o.Learner && !o.Joining {
			learners++
		}
		for _, url := range m.PeerURLs {
			if slices.Contains(o.PeerURLs, url) {
				return rpctypes.ErrGRPCPeerURLExist
			}
		}
	}
	if m.Learner && learners >= c.s.cfg.MaxLearners {
		return rpctypes.ErrGRPCTooManyLearners
	}
	return nil
}

// MemberRemove implements pb.ClusterServer.
func (c *clusterService) MemberRemove(ctx context.Context,
	r *pb.MemberRemoveRequest) (*pb.MemberRemoveResponse, error) {
	if err := c.s.needAdmin(ctx); err != nil {
		return nil, err
	}
	if err := c.mayRemoveStrictly(braid.MemberID(r.ID)); err != nil {
		return nil, err
	}
	if c.find(r.ID) == nil {
		return nil, rpctypes.ErrGRPCMemberNotFound
	}
	change := braid.Change{Kind: braid.RemoveMember, Member: braid.Member{ID: braid.MemberID(r.ID)}}
	if err := c.change(ctx, change); err != nil {
		return nil, err
	}
	return &pb.MemberRemoveResponse{Header: c.header(), Members: c.members()}, nil
}

// MemberUpdate implements pb.ClusterServer. It changes a member's peer URLs and nothing else: the
// member itself publishes its name and client URLs, perhaps at this moment. Whether another member
// has the URLs is checked again where the change is ordered.
func (c *clusterService) MemberUpdate(ctx context.Context,
	r *pb.MemberUpdateRequest) (*pb.MemberUpdateResponse, error) {
	if err := c.s.needAdmin(ctx); err != nil {
		return nil, err
	}
	if c.find(r.ID) == nil {
		return nil, rpctypes.ErrGRPCMemberNotFound
	}
	urls, err := types.NewURLs(r.PeerURLs)
	if err != nil {
		return nil, rpctypes.ErrGRPCMemberBadURLs
	}
	m := braid.Member{ID: braid.MemberID(r.ID), PeerURLs: urls.StringSlice()}
	if err := c.change(ctx, braid.Change{Kind: braid.UpdateMember, Member: m}); err != nil {
		return nil, err
	}
	return &pb.MemberUpdateResponse{Header: c.header(), Members: c.members()}, nil
}

// MemberPromote implements pb.ClusterServer. Only the leader knows whether a learner has
// caught up, so the leader decides.
func (c *clusterService) MemberPromote(ctx context.Context,
	r *pb.MemberPromoteRequest) (*pb.MemberPromoteResponse, error) {
	if err := c.s.needAdmin(ctx); err != nil {
		return nil, err
	}
	leader := func() braid.MemberID { return c.s.self.Load().leader }
	if _, err := ask(ctx, c.s, leader, askPromote, r, new(pb.MemberPromoteResponse)); err != nil {
		return nil, err
	}
	if err := c.s.readable(ctx, false); err != nil {
		return nil, err
	}
	return &pb.MemberPromoteResponse{Header: c.header(), Members: c.members()}, nil
}

func (c *clusterService) promoteHere(ctx context.Context, user *auth.AuthInfo,
	r *pb.MemberPromoteRequest) (resp *pb.MemberPromoteResponse, err error) {
	if !c.s.self.Load().isLeader() {
		return nil, errNotTheOne
	}
	defer func() { c.s.metrics.Promoted(err) }()
	if err := c.s.readable(ctx, false); err != nil {
		return nil, err
	}
	m := c.find(r.ID)
	switch {
	case m == nil:
		return nil, rpctypes.ErrGRPCMemberNotFound
	case !m.Learner || m.Joining: // it becomes a voter without a request
		return nil, rpctypes.ErrGRPCMemberNotLearner
	}
	if err := c.caughtUp(ctx, user, r); err != nil {
		return nil, err
	}
	if err := c.mayPromoteStrictly(); err != nil {
		return nil, err
	}
	if err := c.change(ctx, braid.Change{Kind: braid.AddVoter, Member: braid.Member{ID: m.ID}}); err != nil {
		return nil, err
	}
	return &pb.MemberPromoteResponse{}, nil
}

// caughtUp returns nil if the leader of each instance reports that a learner is ready.
func (c *clusterService) caughtUp(ctx context.Context, user *auth.AuthInfo, r *pb.MemberPromoteRequest) error {
	st := c.s.log.Status()
	if !st.HasLeaders() {
		return rpctypes.ErrGRPCLearnerNotReady
	}
	question, err := encodeAsk(askCaughtUp, user, r)
	if err != nil {
		return err
	}
	var asked []braid.MemberID
	for i := range st.Instances {
		leader := st.Instances[i].Leader
		if slices.Contains(asked, leader) {
			continue
		}
		asked = append(asked, leader)
		if _, err := c.s.asker.member(ctx, leader, question); err != nil {
			return err
		}
	}
	return nil
}

// caughtUpHere answers for the instances that this member leads. A learner is ready when it holds
// nine tenths of their logs.
func (c *clusterService) caughtUpHere(_ context.Context, _ *auth.AuthInfo,
	r *pb.MemberPromoteRequest) (*pb.MemberPromoteResponse, error) {
	st := c.s.log.Status()
	leads := false
	for i := range st.Instances {
		in := &st.Instances[i]
		if in.Leader != st.Self {
			continue
		}
		leads = true
		ready := false
		for _, p := range in.Peers {
			ready = ready || uint64(p.ID) == r.ID && float64(p.Match) >= 0.9*float64(in.Last)
		}
		if !ready {
			return nil, rpctypes.ErrGRPCLearnerNotReady
		}
	}
	if !leads {
		return nil, errNotTheOne
	}
	return &pb.MemberPromoteResponse{}, nil
}

// change makes membership changes, all at once, and waits until this member has them.
func (c *clusterService) change(ctx context.Context, changes ...braid.Change) error {
	ctx, cancel := context.WithTimeout(ctx, c.s.timeout)
	defer cancel()
	return toStatus(c.s.log.ChangeMembers(ctx, changes...))
}

func (c *clusterService) find(id uint64) *braid.Member {
	members := c.s.log.Status().Members
	for i := range members {
		if uint64(members[i].ID) == id {
			return &members[i]
		}
	}
	return nil
}

func (c *clusterService) members() []*pb.Member {
	members := c.s.log.Status().Members
	out := make([]*pb.Member, len(members))
	for i := range members {
		out[i] = toProtoMember(&members[i])
	}
	return out
}

// header has no revision, as etcd's answers about members have none.
func (c *clusterService) header() *pb.ResponseHeader { return c.s.header(0) }

func toProtoMember(m *braid.Member) *pb.Member {
	return &pb.Member{ID: uint64(m.ID), Name: m.Name, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs,
		IsLearner: m.Learner && !m.Joining}
}
