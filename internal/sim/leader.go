package sim

import ()

// leader is the member that leads the latest term of the first instance, or nil.
func (w *World) leader() (leader *Member) { return w.leaderOf(firstInstance) }

// someLeader is the leader of some instance, or nil.
func (w *World) someLeader() *Member {
	return w.leaderOf(w.court.All[w.Among(len(w.court.All))].ID)
}
