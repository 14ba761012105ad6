package braid

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/format"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/replica"
)

// Status describes a member and what it knows of its cluster.
type Status struct {
	Self     MemberID
	Cluster  uint64 // its id, for Options.Cluster
	Protocol string // its name changes with the settings of Profile that it says
	// Tolerance describes the failures that the quorums tolerate, if they are not majorities; else it is empty.
	Tolerance string
	// Settings are those of the protocol alone that do not have their default.
	Settings Settings
	// Profile are the settings that the members share, as applied here.
	Profile Profile
	// Order says how the global log is made: [OrderSingle], [OrderNiagara] or "keyed".
	Order string
	// Begun is the number of instances with which the cluster began; see Niagara.Instances.
	Begun int
	// Lead tells which member leads the global log: to clients there is one leader and one term.
	Lead Lead
	// Instances holds one status per protocol instance, ascending; there is always a first.
	Instances []InstanceStatus
	// Progress says for each of Instances how much of it is in the global log here.
	Progress []InstanceProgress
	// Applied is the last position applied here.
	Applied Position
	// Next is the slot of the global log that comes next. It is the zero Slot if the log is made of
	// one instance. While commands wait, all wait for this slot's instance.
	Next Slot
	// Members are as applied here. With several instances a member is a voter once it votes in all of them.
	Members []Member
	// Lineage tells this log from logs that were founded apart; 0: none is applied here yet, or the order is "keyed".
	Lineage uint64
	// Format is the format in which members write their logs and frames, as applied here. KnownFormat is the newest one
	// that this program knows. The log gets a later format when all members know it.
	Format, KnownFormat int
	// Drained: this member must lead nothing, see [Node.Drain].
	Drained bool

	LogBytes      int64         // bytes of log on disk
	Log           LogStats      // what the disk did
	Links         LinkStats     // what the links did
	Bodies        BodyStats     // the large parts of commands
	Disk          DiskStats     // damage to log and snapshots
	Placement     string        // what members keep of bodies: [PlacementCopy], [PlacementCode] or "rs"
	PendingBytes  int64         // proposals of this member that are not completed
	Commits       uint64        // entries committed since the member started
	Dropped       uint64        // messages dropped because too many waited
	Snapshots     uint64        // snapshots written since the member started
	Starved       uint64        // steps outside the log that waited for a file descriptor
	Stages        StageStats    // how long proposals and reads of this member were in each of their stages
	SnapshotTimes SnapshotStats // how long snapshots took
	Fit           FitStatus     // which change would fit the load better
	At            time.Time     // when this was so
}

// Lead tells which member leads the global log.
type Lead struct {
	// Instance is the one whose leader it is.
	Instance InstanceID
	Leader   MemberID // 0: none is known
	// Term is the one in which it leads. Two members never lead in the same term.
	Term Term
	// Open: every instance has a leader. While one has none, nothing new gets into the global log.
	Open bool
}

// Slot is the place of an instance in a round of the global log.
type Slot struct {
	Round    uint64
	Instance InstanceID
}

// InstanceProgress says how much of one instance is in the global log.
type InstanceProgress struct {
	Instance InstanceID
	// Applied is the last entry that is applied here.
	Applied Index
	// Waiting is how many entries are committed and not applied. Entries with nothing to apply do
	// not count.
	Waiting uint64
	// AppliedRounds, CommittedRounds and AppendedRounds are how many rounds are applied, are
	// filled by what is committed, and by all that is in the log; 0 unless several instances are merged.
	AppliedRounds, CommittedRounds, AppendedRounds uint64
	// Wanted is the slot up to which the other instances must fill theirs, so that everything of
	// this one can be applied.
	Wanted Slot
	// Skips counts the skips that this member proposed since it started.
	Skips uint64
}

// Status describes the member. What it says of terms, indexes and peers may be a tenth of
// a heartbeat old.
func (n *Node) Status() Status {
	s := n.r.Status()
	now := n.describe(&s)
	return Status{
		Self: n.opt.Self, Cluster: n.opt.Cluster, Protocol: now.Name, Tolerance: n.tolerance(&s.Config),
		Settings: now.own, Profile: now.profile.clone(), Order: string(now.Order),
		Placement: string(now.Placement),
		Begun:     s.Begun, Lead: Lead(s.Lead), Instances: s.Instances, Progress: progress(&s),
		Applied: s.Applied.Position, Next: slot(s.Applied.Next),
		Members: members(&s), Lineage: s.Config.Lineage,
		Format: format.Of(s.Config.Format), KnownFormat: format.Newest(), Drained: n.r.Drains(),
		LogBytes: s.LogBytes, Log: logStats(&s.Log), Links: linkStats(&s.Links, s.Trips), PendingBytes: s.PendingBytes,
		Bodies: BodyStats(s.Bodies), Disk: DiskStats(s.Disk),
		Commits: s.Commits, Dropped: s.Dropped, Snapshots: s.Snapshots, Starved: s.Starved,
		Stages: StageStats(s.Stages), SnapshotTimes: s.SnapshotTimes,
		Fit: fitStatus(&s, n.fitMode(&s)), At: time.Now(),
	}
}

// members are those of the first instance. Each instance decides by itself when a member votes in it: a member is a
// voter once it votes in all.
func members(s *replica.Status) []Member {
	all := s.Config.Clone().Members
	for i := range all {
		for k := range s.Instances {
			in := &s.Instances[k].Config
			switch m := in.Find(all[i].ID); {
			case m == nil && len(in.Members) > 0 && !slices.Contains(in.Removed, all[i].ID): // to be added
				all[i].Learner, all[i].Joining = true, true
			case m != nil && m.Learner:
				all[i].Learner, all[i].Joining = true, m.Joining
			}
		}
	}
	return all
}

// described is what a status says of the applied settings. The texts of all profiles take long, and a status is asked
// for often, so they are made once for each profile and number of instances. It does not change.
type described struct {
	registry.Choice
	version   uint64
	instances int
	own       Settings
	profile   Profile
}

// describe describes the applied settings.
func (n *Node) describe(s *replica.Status) *described {
	version, instances := s.Config.Profile.Version, len(s.Applied.Points)
	if d := n.described.Load(); d != nil && d.version == version && d.instances == instances {
		return d
	}
	now := n.opt.under(s)
	d := &described{Choice: now, version: version, instances: instances, own: now.Own(), profile: n.opt.profile(s)}
	n.described.Store(d)
	return d
}

func slot(t order.Slot) Slot { return Slot{Round: uint64(t.Round), Instance: t.Instance} }

func progress(s *replica.Status) []InstanceProgress {
	out := make([]InstanceProgress, len(s.Instances))
	for i := range s.Instances {
		in := &s.Instances[i]
		point := s.Applied.Point(in.Instance)
		out[i] = InstanceProgress{Instance: in.Instance, Applied: point.Index, AppliedRounds: uint64(point.Round)}
		// The instances may be those behind a seal that is not applied yet.
		if !s.Applied.Merged() || len(s.Weave) != len(s.Instances) {
			out[i].Waiting = uint64(in.Commit - min(in.Commit, point.Index))
			continue
		}
		w := &s.Weave[i]
		out[i].Waiting, out[i].Skips, out[i].Wanted = uint64(w.Waiting), w.Skips, slot(w.Want)
		// What the event loop said may be older than what is applied.
		out[i].CommittedRounds = uint64(max(w.Filled, point.Round))
		out[i].AppendedRounds = uint64(max(w.Tail, point.Round))
	}
	return out
}

// removed reports whether every instance has decided to continue without this member.
func (s *Status) removed() bool {
	for i := range s.Instances {
		if !s.Instances[i].Removed {
			return false
		}
	}
	return len(s.Instances) > 0
}

// Leader returns the member that leads the global log, 0 if none is known.
func (s Status) Leader() MemberID { return s.Lead.Leader }

// IsLeader reports whether this member leads the global log.
func (s Status) IsLeader() bool { return s.Self != 0 && s.Leader() == s.Self }

// HasLeaders reports whether a leader is known for every instance and, as far as this member knows, enough members are
// active to decide. While that is not so for one instance, nothing new gets into the global log.
func (s Status) HasLeaders() bool { return s.Lead.Open }
