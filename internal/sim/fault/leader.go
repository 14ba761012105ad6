package fault

import (
	"github.com/braidlog/braid/internal/sim/node"
)

// Leader returns the member that leads the latest term of the first instance, or nil.
func (w *World) Leader() (leader *node.Member) { return w.LeaderOf(node.FirstInstance) }

// SomeLeader returns the leader of an instance drawn by chance, or nil.
func (w *World) SomeLeader() *node.Member {
	return w.LeaderOf(w.Court.All[w.Among(len(w.Court.All))].ID)
}
