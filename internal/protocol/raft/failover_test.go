package raft_test

import (
	"testing"
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/conformance"
)

// pass lets time pass in a cluster whose messages take one to two of its milliseconds, until
// ok; it returns how long that took.
func pass(t *testing.T, net *conformance.Net, limit time.Duration, ok func() bool) time.Duration {
	t.Helper()
	for d := time.Duration(0); d < limit; d += conformance.Pace {
		if ok() {
			return d
		}
		for range len(net.Queue) {
			net.Deliver(0)
		}
		for _, n := range net.Nodes {
			net.Sync(n.ID)
			net.Tick(n.ID, conformance.Pace)
		}
	}
	t.Fatalf("waited %s in vain", limit)
	return 0
}

// follows reports whether all members that run follow a leader that runs.
func follows(net *conformance.Net) bool {
	leader := protocol.MemberID(0)
	for _, n := range net.Nodes {
		if n.Core == nil {
			continue
		}
		l := n.Core.Status().Leader
		if leader == 0 {
			leader = l
		}
		if l == 0 || l != leader || net.Node(l).Core == nil {
			return false
		}
	}
	return true
}

// failover crashes the leader of an instance and, after it, as many of those that are next in
// rank as more says. It returns how long the others are without a leader, how many terms
// they needed, and who leads.
func failover(t *testing.T, leaders protocol.Leaders, instance protocol.InstanceID, more int,
	seed uint64) (time.Duration, int, int) {
	net := conformance.NewNet(t, 5, seed, message.Codec,
		factory(func(c *protocol.Settings) { c.Leaders, c.Instance = leaders, instance }))
	pass(t, net, 20*timeout, func() bool { return follows(net) })
	settle := time.Duration(seed%20) * conformance.Pace
	pass(t, net, 20*timeout, func() bool { settle -= conformance.Pace; return settle < 0 })
	gone := net.Leader()
	before := gone.Core.Status()
	voters := before.Config.Voters()
	net.Crash(gone.ID, 0)
	for _, id := range voters {
		if id != gone.ID && leaders.Rank(voters, int(instance)-1, id, gone.ID) < more {
			net.Crash(id, 0)
		}
	}
	took := pass(t, net, 20*timeout, func() bool { return follows(net) })
	st := net.Leader().Core.Status()
	return took, int(st.Term - before.Term), leaders.Rank(voters, int(instance)-1, st.Leader, gone.ID)
}

// Where there are ranks, the first one that lives wins in one term, as soon as votes may be
// given plus its turn; and so it is in all instances that lost the same member.
func TestFailoverByRank(t *testing.T) {
	const stagger = timeout / 8
	for _, l := range []protocol.Leaders{protocol.LeadersTogether, protocol.LeadersSpread} {
		for more := range 2 {
			for seed := range uint64(40) {
				took, terms, rank := failover(t, l, protocol.InstanceID(seed%8+1), more, seed)
				const trips = 10 * conformance.Pace
				if most := timeout + time.Duration(more)*stagger + stagger/2 + trips; took > most || terms != 1 || rank != more {
					t.Errorf("%s, %d more dead, seed %d: %s and %d terms until rank %d leads, want %s at most", l, more, seed, took,
						terms, rank, most)
				}
			}
		}
	}
}
