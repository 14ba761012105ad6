package fault

import (
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// faultTransfer: the operator hands over leadership.
var faultTransfer = &Fault{Name: "transfer", Usual: true, Thinned: true}

func init() {
	faultTransfer.Strike = transferLeadership
}

// transferLeadership asks a member for another leader, as an operator does: the leader, or any other member. Members also tell
// each other's instances to hand over: see instance.LeaderPreference.
func transferLeadership(w *World, m *node.Member) {
	instance := w.Court.All[w.Among(len(w.Court.All))].ID
	if leader := w.LeaderOf(instance); leader != nil && w.Chance(0.6) {
		m = leader
	}
	to := protocol.MemberID(w.Pick(w.Set.Nodes + 1))
	w.Tracef("FAULT %s is told to hand leadership%s to %s", m.ID, w.Named(instance), to)
	if instance == node.FirstInstance {
		w.Ask(m, cluster.Operation{Kind: cluster.TransferLeader, To: to}, w.Between(w.Set.Election, 10*w.Set.Election), func(error) {})
		return
	}
	m.WhenAwake(func() { m.Tell([]member.InstanceInput{{Instance: instance, Input: protocol.Transfer{To: to}}}) })
}
