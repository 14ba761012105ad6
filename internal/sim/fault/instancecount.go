package fault

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// faultReshape is drawn by drawWeave.
var faultReshape = &Fault{Name: "reshape", Thinned: true, Does: "the operator changes the number of instances"}

func init() {
	faultReshape.Strike = func(w *World, _ *node.Member) { reshape(w) }
}

// reshape asks for another number of instances, as an operator does. Sometimes the state machine of a member stalls
// then, so that its new instances run long before its state machine reaches the change.
func reshape(w *World) {
	n, m := 1+w.Pick(5), memberToAsk(w)
	if has, most := m.InstancesApplied(), w.Leader(); most != nil && most.InstancesApplied() != has && w.Chance(0.8) {
		n = has // a member that is behind considers it done
	}
	w.Tracef("FAULT %s is asked for %d instances", m.ID, n)
	if up := w.UpAnd(func(*node.Member) bool { return true }); !w.Calm && len(up) > 0 && w.Chance(0.4) {
		lagBehind(w, up[w.Among(len(up))])
	}
	if n < len(m.InForce) && w.Chance(0.5) {
		w.After(w.Between(0, w.Set.Heartbeat), func() { missRetirement(w) })
	}
	w.Ask(m, cluster.Operation{
		Kind: cluster.Reshape, Instances: n,
	}, w.Between(w.Set.Election, 20*w.Set.Election), func(err error) {
		if err == nil && !w.Calm && w.Chance(w.Set.Weave.Move) {
			moveToOtherMachine(w)
		}
	})
}

// askReshape asks a member for a number of instances.
func askReshape(w *World, m *node.Member, n int, patience time.Duration) {
	w.Tracef("FAULT %s is asked for %d instances", m.ID, n)
	w.Ask(m, cluster.Operation{Kind: cluster.Reshape, Instances: n}, patience, func(error) {})
}

// askOutdated asks a member whose state is behind, mostly the leader, for the number of instances in that state,
// while others apply another number. The member considers the request done unless it notices that it is behind. In a
// scenario operators ask only for what the scenario says.
func askOutdated(w *World, now int) {
	behind := w.UpAnd(func(m *node.Member) bool { return m.InstancesApplied() != now })
	if w.Calm || len(behind) == 0 || w.Set.Faults[faultReshape] == 0 || !w.Chance(0.5) {
		return
	}
	m := behind[w.Among(len(behind))]
	if l := w.Leader(); slices.Contains(behind, l) && w.Chance(0.7) {
		m = l
	}
	n := m.InstancesApplied()
	lagBehind(w, m)
	w.After(w.Between(0, w.Set.Election), func() {
		if m.Up && !w.Calm {
			w.Tracef("FAULT %s is asked for %d instances, where others come to %d", m.ID, n, now)
			w.Ask(m, cluster.Operation{Kind: cluster.Reshape, Instances: n},
				w.Between(w.Set.Election, 20*w.Set.Election), func(error) {})
		}
	})
}

// missRetirement cuts off a member while instances are retired, until it needs a snapshot. Its proposals in these
// instances may have taken effect, and it proposes them again.
func missRetirement(w *World) {
	list := w.UpAnd(func(m *node.Member) bool { return !m.Leads() })
	if len(list) == 0 || w.Calm {
		return
	}
	m := list[w.Among(len(list))]
	for range 1 + w.Pick(4) {
		w.Clients.ComeTo(m, check.Put, w.Clients.DrawKey(), w.Between(0, w.Set.HopMax+2*w.Set.DelayMax))
	}
	w.After(2*w.Set.DelayMax, func() {
		if m.Up && !w.Calm && !anyAway(w) {
			cutAway(w, m)
		}
	})
}

// moveToOtherMachine moves a member to another machine as soon as the number of instances has changed, as an operator
// does. The new member never takes part in instances that were retired before it joined.
func moveToOtherMachine(w *World) {
	if w.Set.Faults[faultChange] == 0 || w.Set.Resize || len(w.Members) >= w.Set.Nodes+maxAdded {
		return
	}
	added := AddMember(w)
	askChange(w, memberToAsk(w), []protocol.Change{{Kind: protocol.AddLearner, Member: added}})
	promoteLater(w, added.ID)
}

// Reshaped implements node.Observer.
func (w *World) Reshaped(_ *node.Member, position protocol.Position, instances int, begins bool) {
	if begins && position > w.grown { // the new ones elect their first leaders, all at the same time
		w.grown = position
		w.detours += w.Set.electionTime()
	}
	askOutdated(w, instances)
}
