package sim

import (
	"slices"

	"github.com/braidlog/braid/protocol"
)

// leader is the member that leads the latest term of the first instance, or nil.
func (w *World) leader() (leader *Member) { return w.leaderOf(firstInstance) }

// someLeader is the leader of some instance, or nil.
func (w *World) someLeader() *Member {
	return w.leaderOf(w.court.All[w.Among(len(w.court.All))].ID)
}

func (w *environment) leaderOf(instance protocol.InstanceID) (leader *Member) {
	last := protocol.Term(0)
	for _, m := range w.members {
		if !m.up {
			continue
		}
		if s := m.of(instance); s != nil && !s.ended && s.leads() && s.witness.status.Term > last {
			leader, last = m, s.witness.status.Term
		}
	}
	return leader
}

// leadsAny reports whether the member believes that it leads some instance.
func (m *Member) leadsAny() bool { return slices.ContainsFunc(m.inForce, (*memberInstance).leads) }
