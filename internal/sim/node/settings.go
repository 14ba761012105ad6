package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/protocol/iss"
	"github.com/braidlog/braid/internal/protocol/iss/epochs"
	"github.com/braidlog/braid/internal/protocol/wpaxos"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/judge"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// Settings are what members and their surroundings know of the settings.
type Settings struct {
	ClusterSettings
	TimeSettings
	LinkSettings
	DiskSettings
	MemberSettings
	foundingSettings

	Core   protocol.Settings // of every instance, without Self and Instance
	Bodies BodySettings
	Weave  weaveSettings
}

// ClusterSettings are what the options say of the cluster.
type ClusterSettings struct {
	Protocol  *registry.Protocol
	Quorums   quorum.System
	Placement protocol.Placement
	Seed      uint64
	Nodes     int
	Mutant    string
	// Instances is how many instances are merged into the global log; 0: one instance's log is the
	// global log.
	Instances int
	// Keyed: the instances are groups of keys, which have no common order.
	Keyed bool
	// Unequal: members may have settings of their own.
	Unequal bool
	// Moves: members may get other addresses. Rots: records on disks go bad. Both follow from the faults of the run.
	Moves, Rots bool
}

// foundingSettings say how the cluster began, and which other logs there are.
type foundingSettings struct {
	// Birth names the state with which the cluster begins; "": an empty one.
	Birth string
	// Alone is the only member of the cluster at first; 0: there are more.
	Alone protocol.MemberID
	// Noted: every directory notes what its log is from the first start on. A core that the registry does not have
	// cannot be found out later.
	Noted bool
	// Astray is how often a member is started with a state machine that is not of its log.
	Astray float64
}

// TimeSettings are the times from which most others follow.
type TimeSettings struct {
	Heartbeat, Election, Tick time.Duration
	Chaos                     time.Duration // how long the first phase lasts
}

// LinkSettings are what links do to messages.
type LinkSettings struct {
	device.Distances
	Drop, Duplicate, Corrupt float64 // shares of messages
	Reorder                  bool
	StreamBreaks             float64 // share of snapshots' streams that break
	StreamRate               int     // bytes a second of a snapshot's stream; 0: a million
}

// DiskSettings are of disks, and of what is kept on them.
type DiskSettings struct {
	SyncMin, SyncMax time.Duration
	SegmentBytes     int64
	SnapshotBytes    int
	KeepLogBytes     int64 // of log that is kept for members that catch up
	Durable          bool  // the state machine keeps its own state on disk
	// CopyOnWrite: while a disk is full, files of the log and of the bodies cannot be overwritten.
	CopyOnWrite bool
	// Shortage is how often a disk is not full at once, but has about what the member needs.
	Shortage float64
}

// MemberSettings are limits and delays inside a member, and its clock.
type MemberSettings struct {
	Depth, BatchCommands, BatchBytes int
	GiveUp                           time.Duration // how long a member waits for what it was asked for
	Padding                          int           // most bytes by which clients pad a command

	Backlog    int           // entries of an instance that may be committed and not applied; 0: any number
	ApplyBytes int           // bytes of payloads that may wait to be applied
	ApplyMax   time.Duration // the longest that applying a commitment takes
	Idle       float64       // how soon an idle log is sealed, as a share of what production waits
	HopMax     time.Duration // the longest that an event takes from one part of a member to another
	// PendingBytes bounds what a member has proposed and not settled (0: 1 GiB). InboxBytes bounds
	// the messages that wait for its instances (0: no limit). LargeMessage is how many bytes make a
	// message large (0: as in production).
	PendingBytes             int64
	InboxBytes, LargeMessage int

	Drift float64 // the most by which a clock runs fast or slow, as a share
}

// BodySettings are a run's settings for bodies.
type BodySettings struct {
	// Share is the share of writes that carry their value as a body.
	Share    float64
	Min, Max int // bytes of a body
	// Release is the longest time between a durable drop of the last reference and the release of
	// the body.
	Release      time.Duration
	SegmentBytes int64
	Hedge, Retry time.Duration
	GatherBytes  int64
	LimitSettings
	// Scrub is how often a member verifies what it holds; 0: never.
	Scrub time.Duration
}

// LimitSettings bound what a member does with bodies at once, and what may wait. See
// body.BodyConfig and body.BodyLimits. 0: as in production.
type LimitSettings struct {
	Filling, HolderCounts       int
	InboxBytes, Asks, Questions int
	CacheBytes                  int64
}

// weaveSettings are the settings for woven instances.
type weaveSettings struct {
	// Scatter is the share of batches that go to any instance, and not to the one that suits best.
	Scatter float64
	// Lazy is how often a leader sees late that a sibling waits for it.
	Lazy float64
	// Move is how often a member is moved to another machine after the number of instances has
	// changed.
	Move float64
}

// firstConfig is the membership that the cluster begins with.
func (s *Settings) firstConfig() protocol.Config {
	var c protocol.Config
	if s.Alone != 0 {
		return protocol.Config{Members: []protocol.Member{{ID: s.Alone}}}
	}
	for i := range s.Nodes {
		m := protocol.Member{ID: protocol.MemberID(i + 1), Slot: uint8(i)}
		if s.Moves {
			m.PeerURLs = []string{home(m.ID)}
		}
		c.Members = append(c.Members, m)
	}
	return c
}

// ByKey reports whether the protocol is one of these.
func (s *Settings) ByKey() bool { return s.Protocol.Core.Judged.ByKey }

// Woven reports whether the global log is woven from instances, even from a single one.
func (s *Settings) Woven() bool { return s.Instances > 0 && !s.Keyed }

// begin is the cursor at which the cluster's global log begins.
func (s *Settings) begin() order.Cursor {
	if s.Keyed {
		return order.BeginKeyed(s.Instances)
	}
	return order.Begin(max(1, s.Instances), s.Woven())
}

// newCore makes the protocol's core of a member.
func (s *Settings) newCore(self protocol.MemberID, instance protocol.InstanceID, session protocol.Session, rec protocol.Recovered) (protocol.Core, error) {
	c := s.Core
	c.Self, c.Instance, c.Session = self, instance, session
	return s.Protocol.Core.New(c, rec)
}

// codec is what is known of the messages of the protocol's core.
func (s *Settings) codec() *protocol.Codec { return s.Protocol.Core.Codec }

// derive is what the core's instances derive state with; nil: there is none.
func (s *Settings) derive() func(protocol.Config) protocol.Derived {
	return s.Protocol.Core.Deriving(s.Core.Own)
}

// epochsTold is how a member's directory remembers the settings.
func (s *Settings) epochsTold() string {
	return s.Protocol.Core.Settings.Text(epochs.Setting.Name, s.Core.Own)
}

// Mutant is the mutant for the types of package member. They know which mutants are theirs.
func (s *Settings) MutantName() mutant.Name { return mutant.Name(s.Mutant) }

// deciders are those among a configuration's voters that decide.
func (s *Settings) deciders(c *protocol.Config) quorum.Set {
	set := s.Quorums.Decides(quorum.Of(c))
	if s.Protocol.Quorums != nil {
		set.Need = max(s.Core.WriteQuorum, quorum.Size(len(set.Incoming)))
	}
	return set
}

// JudgeQuorums are those that decide where an entry is.
func (s *Settings) JudgeQuorums() check.Quorums {
	if s.Protocol.Quorums != nil {
		return check.Quorums{} // that these are larger is for the sake of bodies
	}
	return s.bodyQuorums()
}

// bodyQuorums are those that decide where bodies are.
func (s *Settings) bodyQuorums() check.Quorums {
	elect, decide, rows, zones := s.Quorums.Parts()
	if s.Protocol.Quorums != nil {
		elect, decide = s.Core.ReadQuorum, s.Core.WriteQuorum
	}
	return check.Quorums{Read: elect, Write: decide, Rows: rows, Zones: zones.Count, Lost: zones.Lost, Down: zones.Down}
}

// BodyTimeout is how long a member tries at most to gather one body.
func (s *Settings) BodyTimeout() time.Duration { return s.GiveUp + 2*s.GatherTime() }

// GatherTime is how long making one body whole may take once everything works.
func (s *Settings) GatherTime() time.Duration {
	return 8 * (s.Bodies.Hedge + s.Bodies.Retry + 2*s.DelayMax + s.Tick)
}

// Rules are what the judges must know of the settings.
func (s *Settings) Rules() judge.Rules {
	return judge.Rules{
		Core: s.Protocol.Core, Instances: s.Instances, Woven: s.Woven(), First: s.firstConfig(),
		Quorums: s.JudgeQuorums(), BodyQuorums: s.bodyQuorums(),
	}
}

// Roomy reports whether no limit is so small that commands of these clients are refused, or wait for a snapshot or for each
// other: with an entry a message a slow member is late for good reasons. A relay waits for those behind it, half a heartbeat
// each time, so a slow one makes others late. So does a leader that waits before it skips its slots, or has members vote for them:
// each time that others' values come behind them. A group of keys that moves after few questions is on its way to somebody most of
// the time, while everybody asks for it.
func (s *Settings) Roomy() bool {
	c := &s.Core
	if how := wpaxos.Steal.In(c.Own); s.Protocol.Core.Settings.Has(wpaxos.Steal) && how.Policy != wpaxos.StealNever && how.After < restless {
		return false
	}
	return s.Backlog == 0 && len(s.Protocol.Core.Settings.Detours(c.Own)) == 0 && s.SnapshotBytes > 1<<20 && c.MaxUncommittedBytes > 64<<10 &&
		c.MaxFrameEntries != 1 && c.MaxFrameBytes > 1 && c.MaxInflightBytes > 1
}

// Brisk makes disks and links so fast that a command takes much less than a heartbeat. Links keep the order, as they do
// outside of the simulator.
func (s *Settings) Brisk() {
	s.Swift()
	h := s.Heartbeat
	s.Reorder = false
	s.DelayMin, s.SyncMin, s.HopMax = min(s.DelayMin, h/200), min(s.SyncMin, h/200), min(s.HopMax, h/500)
	s.DelayMax, s.SyncMax = min(s.DelayMax, h/100), min(s.SyncMax, h/100)
}

// Swift makes disks and links fast, and inboxes large. Heartbeats and timeouts stay, so that what waits for these shows.
func (s *Settings) Swift() {
	s.DelayMin, s.SyncMin = min(s.DelayMin, s.Election/200), min(s.SyncMin, s.Election/200)
	s.DelayMax, s.SyncMax = min(s.DelayMax, s.Election/100), min(s.SyncMax, s.Election/100)
	s.HopMax = min(s.HopMax, s.Election/1000)
	s.InboxBytes = 0
}

// Timely makes everything fast enough for elections to succeed. Progress is promised only where
// messages and disks are faster than election timeouts.
func (s *Settings) Timely() {
	s.DelayMin, s.SyncMin = min(s.DelayMin, s.Election/20), min(s.SyncMin, s.Election/20)
	s.DelayMax, s.SyncMax = min(s.DelayMax, s.Election/8), min(s.SyncMax, s.Election/8)
	s.HopMax = min(s.HopMax, s.Election/50) // a vote or an entry takes many hops
	s.ApplyMax, s.StreamRate = 0, 0
}

// Flexible reports whether there are quorums that are no majorities, and whose sizes do not depend on bodies.
func (s *Settings) Flexible() bool { return !s.Quorums.Majority() }

// DrawIdle chooses what a leader does that has nothing to propose. Members may differ in it.
func (s *Settings) DrawIdle(d draw.Chance) {
	s.Core.Own = iss.SkipWait.Set(iss.NoSkip.Set(s.Core.Own, d.Yes(0.5)), 0)
	if d.Yes(0.6) {
		s.Core.Own = iss.SkipWait.Set(s.Core.Own, d.Duration(0, mostSkipWait*s.Heartbeat))
	}
}

// idles reports whether a leader that has nothing to propose does something else than skip at once.
func (s *Settings) idles() bool {
	return iss.NoSkip.In(s.Core.Own) || iss.SkipWait.In(s.Core.Own) > 0
}

// MostSkipWait is how long any member may let another one's value wait; 0: no member waits.
func (s *Settings) MostSkipWait() time.Duration {
	if s.idles() {
		return mostSkipWait * s.Heartbeat
	}
	return 0
}

// ProtocolMutant is the mutant if it belongs to the protocol, else none.
func (s *Settings) ProtocolMutant() protocol.Mutant {
	m := protocol.Mutant(s.Mutant)
	if !slices.ContainsFunc(s.Protocol.Core.Mutants, func(i mutant.Info) bool { return i.Name == m }) {
		return ""
	}
	return m
}

// OrProduction returns the limits, with production's value where none is set. Without a setting
// nothing is cached.
func (s LimitSettings) OrProduction() LimitSettings {
	s.Filling, s.HolderCounts = cmp.Or(s.Filling, 8), cmp.Or(s.HolderCounts, 64)
	s.InboxBytes, s.Asks, s.Questions = cmp.Or(s.InboxBytes, 128<<20), cmp.Or(s.Asks, 1<<16), cmp.Or(s.Questions, 1024)
	return s
}

// mostSkipWait bounds, in heartbeats, how long a leader that has nothing to propose waits.
const mostSkipWait = 2

// restless is after how many questions a group of keys moves at least, where this is judged.
const restless = 4
