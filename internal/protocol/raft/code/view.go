package code

import (
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/members"
	"github.com/braidlog/braid/internal/protocol/raft/raftlog"
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
)

// View is what the placement of bodies sees of its member. Its owner brings it up to date before each call. The parts
// that it points to stay the same.
type View struct {
	Settings *protocol.Settings
	Log      *raftlog.Log
	Disk     *raftlog.Disk
	Members  *members.Configs
	Coded    *Coded
	Bodies   *Bodies
	// Marks and Restripe are a leader's.
	Marks    *Marks
	Restripe *Restripe

	Now time.Duration
	// Commit is the commit index, and Applied how far the member has applied the log; see protocol.Tick.
	Commit, Applied protocol.Index
	// First is the index of a leader's first entry, Peers are those that receive its log, and Handing says
	// that it hands its leadership over.
	First   protocol.Index
	Peers   []*tracker.Progress
	Handing bool
}

// Peer returns what is known of a member, nil if it does not receive the log.
func (v *View) Peer(id protocol.MemberID) *tracker.Progress { return tracker.Find(v.Peers, id) }

// recently reports whether a member was heard from within two heartbeats, so that it counts as
// alive.
func (v *View) recently(p *tracker.Progress) bool {
	return p.HeardWithin(v.Now, 2*v.Settings.Heartbeat)
}
