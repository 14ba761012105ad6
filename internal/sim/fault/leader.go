package fault

import (
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// Leader returns the member that leads the latest term of the first instance, or nil.
func (w *World) Leader() (leader *node.Member) { return w.LeaderOf(w.Court.First.ID) }

// SomeLeader returns the leader of an instance drawn by chance, or nil.
func (w *World) SomeLeader() *node.Member { return w.LeaderOf(w.someInstance()) }

// someInstance draws an instance. Some of them may have ended.
func (w *World) someInstance() protocol.InstanceID {
	return w.Court.All[w.Among(len(w.Court.All))].ID
}
