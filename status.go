package braid

import (
	"time"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/replica"
)

// Status describes a member and what it knows of its cluster.
type Status struct {
	Self    MemberID
	Cluster uint64
	// Instances holds one status per protocol instance (one, for raft).
	Instances []protocol.Status
	// Applied is the last position applied here. AppliedIndex and AppliedTerm say up to
	// which entry of the first instance that is.
	Applied      Position
	AppliedIndex protocol.Index
	AppliedTerm  protocol.Term
	Members      []Member // as applied here
	Ready        bool     // a leader is known and everything known to be committed is applied

	LogBytes     int64             // bytes of log on disk
	Log          replica.LogStats  // what the disk did
	Links        replica.LinkStats // what the links did
	Bodies       replica.BodyStats // the large parts of commands
	Placement    string            // what members keep of them
	PendingBytes int64             // proposals of this member that are not settled
	Commits      uint64            // entries committed in this life
	Dropped      uint64            // messages dropped because the inbox was full
	Snapshots    uint64            // snapshots written in this life
	At           time.Time
}

// Status describes the member. What it says of terms, indexes and peers may be a tenth of
// a heartbeat old.
func (n *Node) Status() Status {
	s := n.r.Status()
	point := s.Applied.Points[0]
	return Status{
		Self: n.opt.Self, Cluster: n.opt.Cluster, Instances: s.Instances,
		Applied: s.Applied.Position, AppliedIndex: point.Index, AppliedTerm: point.Term,
		Members:  s.Config.Clone().Members,
		Ready:    s.Instances[0].Leader != 0 && point.Index >= s.Instances[0].Commit,
		LogBytes: s.LogBytes, Log: s.Log, Links: s.Links, PendingBytes: s.PendingBytes,
		Bodies: s.Bodies, Placement: n.opt.Placement,
		Commits: s.Commits, Dropped: s.Dropped, Snapshots: s.Snapshots, At: time.Now(),
	}
}

// Leader returns the leader of the first instance, 0 if none is known.
func (s *Status) Leader() MemberID {
	if len(s.Instances) == 0 {
		return 0
	}
	return s.Instances[0].Leader
}

// IsLeader reports whether this member leads the first instance.
func (s *Status) IsLeader() bool { return s.Self != 0 && s.Leader() == s.Self }
