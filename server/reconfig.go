package server

import (
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/braidlog/braid"
)

// The conditions of etcd for changes of the membership (--strict-reconfig-check), from what the member that is asked
// knows. They are stricter than those of the log, which has its own: a change that would leave no quorum is refused in
// any case. A member that was added as a voter counts as one, as in etcd's answers.

// reconfig is what the conditions are about.
type reconfig struct {
	self    braid.MemberID
	voters  []braid.Member
	removed braid.MemberID // does not count
	links   []braid.PeerStats
}

func (c *clusterService) reconfig() *reconfig {
	st := c.s.log.Status()
	r := &reconfig{self: st.Self, links: st.Links.Peers}
	for _, m := range st.Members {
		if !m.Learner || m.Joining {
			r.voters = append(r.voters, m)
		}
	}
	return r
}

// started is how many voters have published their names, without the member that is to be removed.
func (r *reconfig) started() (n int) {
	for i := range r.voters {
		if r.voters[i].Name != "" && r.voters[i].ID != r.removed {
			n++
		}
	}
	return n
}

// reached is how many voters have a link with this member, which counts, too.
func (r *reconfig) reached() (n int) {
	for i := range r.voters {
		if r.answers(r.voters[i].ID) {
			n++
		}
	}
	return n
}

func (r *reconfig) answers(id braid.MemberID) bool {
	return id == r.self || slices.ContainsFunc(r.links, func(p braid.PeerStats) bool { return p.ID == id && p.Connected })
}

func majority(n int) int { return n/2 + 1 }

// mayAddStrictly demands that the voters which have started, and those which are reached, would be a majority with the
// new member. A cluster of one may always grow.
func (c *clusterService) mayAddStrictly(m *braid.Member) error {
	if c.s.cfg.LaxReconfig {
		return nil
	}
	r := c.reconfig()
	with := len(r.voters) + 1
	switch started := r.started(); {
	case !m.Learner && started < majority(with) && (started != 1 || with != 2):
		return rpctypes.ErrGRPCMemberNotEnoughStarted
	case len(r.voters) > 1 && r.reached() < majority(with):
		return rpctypes.ErrGRPCUnhealthy
	}
	return nil
}

// mayRemoveStrictly demands that the voters which have started are a majority without the member, and, if the member is
// reached, those which are reached, too.
func (c *clusterService) mayRemoveStrictly(id braid.MemberID) error {
	m := c.find(uint64(id))
	if c.s.cfg.LaxReconfig || m != nil && m.Learner && !m.Joining {
		return nil
	}
	r := c.reconfig()
	r.removed = id
	without := len(r.voters)
	if m != nil {
		without--
	}
	switch {
	case r.started() < majority(without):
		return rpctypes.ErrGRPCMemberNotEnoughStarted
	case r.answers(id) && r.reached()-1 < 1+(len(r.voters)-1)/2:
		return rpctypes.ErrGRPCUnhealthy
	}
	return nil
}

// mayPromoteStrictly demands that the voters which have started and the learner would be a majority.
func (c *clusterService) mayPromoteStrictly() error {
	if r := c.reconfig(); !c.s.cfg.LaxReconfig && r.started()+1 < majority(len(r.voters)+1) {
		return rpctypes.ErrGRPCMemberNotEnoughStarted
	}
	return nil
}
