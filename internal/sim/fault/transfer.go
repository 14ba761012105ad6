package fault

import (
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

var faultTransfer = &Fault{Name: "transfer", Usual: true, Thinned: true, Does: "the operator transfers leadership"}

func init() {
	faultTransfer.Strike = transferLeadership
}

// transferLeadership asks the leader, or any other member, to transfer leadership, as an operator does. Members also
// transfer leadership without an operator: see instance.LeaderPreference.
func transferLeadership(w *World, m *node.Member) {
	instance := w.someInstance()
	if leader := w.LeaderOf(instance); leader != nil && w.Chance(0.6) {
		m = leader
	}
	to := protocol.MemberID(w.Pick(w.Set.Nodes + 1))
	w.Tracef("FAULT %s is told to hand leadership%s to %s", m.ID, w.Named(instance), to)
	if instance == w.Court.First.ID {
		w.Ask(m, cluster.Operation{Kind: cluster.TransferLeader, To: to},
			w.Between(w.Set.Election, 10*w.Set.Election), func(error) {})
		return
	}
	m.WhenAwake(func() { m.Tell([]member.InstanceInput{{Instance: instance, Input: protocol.Transfer{To: to}}}) })
}
