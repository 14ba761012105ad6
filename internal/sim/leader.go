package sim

import (
	"github.com/braidlog/braid/internal/sim/node"
)

// leader is the member that leads the latest term of the first instance, or nil.
func (w *World) leader() (leader *node.Member) { return w.LeaderOf(node.FirstInstance) }

// someLeader is the leader of some instance, or nil.
func (w *World) someLeader() *node.Member {
	return w.LeaderOf(w.Court.All[w.Among(len(w.Court.All))].ID)
}
