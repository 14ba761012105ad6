package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/protocol/iss"
	"github.com/braidlog/braid/internal/protocol/iss/epochs"
	"github.com/braidlog/braid/internal/protocol/raft/lane"
	"github.com/braidlog/braid/internal/protocol/wpaxos"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/judge"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/quorum"
	"github.com/braidlog/braid/protocol/setting"
)

// Settings are the settings of members and their environment.
type Settings struct {
	ClusterSettings
	TimeSettings
	LinkSettings
	DiskSettings
	MemberSettings
	foundingSettings
	Fit FitSettings

	Core   protocol.Settings // of every instance, without Self and Instance
	Bodies BodySettings
	Weave  weaveSettings

	// Tuned are the values of profiles that operators have asked for so far: of each setting that did not have its
	// default in all of them, the last other value.
	Tuned setting.Values
}

// ClusterSettings are the cluster's settings from the options.
type ClusterSettings struct {
	Protocol  *registry.Protocol
	Quorums   quorum.System
	Placement protocol.Placement
	Seed      uint64
	Nodes     int
	Mutant    string
	// Instances is the number of instances that are merged into the global log; 0: one instance's log is the global log.
	Instances int
	// Single: the global log begins without rounds, because there is one instance at first.
	Single bool
	// Keyed: the instances are groups of keys, without a common order.
	Keyed bool
	// Unequal: members may have settings of their own.
	Unequal bool
	// OtherFlags: members start with the flags of other protocols of the same core.
	OtherFlags bool
	// Switches: operators may change the protocol.
	Switches bool
	// Targets are what they may change besides the core.
	Targets TargetSettings
	// Moves: members may get other addresses. Rots: records on disks are damaged. Both follow from the faults of the
	// run.
	Moves, Rots bool
}

// TargetSettings say to what logs are sealed.
type TargetSettings struct {
	// All: a profile behind a seal may differ in all settings, and lanes may be on before it and behind it.
	All bool
	// Quorums are those that some of them have; majorities: there are none.
	Quorums quorum.System
}

// foundingSettings are the cluster's initial state, and other logs that exist.
type foundingSettings struct {
	// Birth names the cluster's initial state; "": an empty one.
	Birth string
	// Alone is the only member of the cluster at first; 0: there are more.
	Alone protocol.MemberID
	// Zones has the zone of each of the first members; nil: none has one.
	Zones []string
	// Profile is the first profile of the log; version 0: the log begins without one.
	Profile protocol.Profile
	// Noted: every directory records the kind of its log from the first start on. A core that is not in the registry
	// cannot be inferred later.
	Noted bool
	// Astray is the rate of starts with a state machine of another log.
	Astray float64
}

// TimeSettings are the times from which most others follow.
type TimeSettings struct {
	// Heartbeat and Election are the settings of timing, or the longest that operators tune them to.
	Heartbeat, Election, Tick time.Duration
	// Quickest is the shortest election timeout that operators tune; 0: they do not.
	Quickest time.Duration
	Chaos    time.Duration // the duration of the first phase
}

// LinkSettings are the faults of links.
type LinkSettings struct {
	device.Distances
	Drop, Duplicate, Corrupt float64 // shares of messages
	Reorder                  bool
	StreamBreaks             float64 // share of snapshots' streams that break
	StreamRate               int     // bytes a second of a snapshot's stream; 0: a million
}

// DiskSettings are settings of disks, and of the files on them.
type DiskSettings struct {
	SyncMin, SyncMax time.Duration
	SegmentBytes     int64
	SnapshotBytes    int
	KeepLogBytes     int64 // of log retained for members that catch up
	Durable          bool  // the state machine keeps its own state on disk
	// CopyOnWrite: while a disk is full, files of the log and of the bodies cannot be overwritten.
	CopyOnWrite bool
	// Kills: about half of the members that stop leave the machine running, with what they wrote in its memory.
	Kills bool
	// Shortage is the rate at which a full disk first has about the space that the member needs.
	Shortage float64
}

// MemberSettings are limits and delays inside a member, and its clock.
type MemberSettings struct {
	Depth, BatchCommands, BatchBytes int
	GiveUp                           time.Duration // how long a member waits for the result of a request
	Padding                          int           // the maximal padding of a command in bytes

	Backlog    int           // entries of an instance that may be committed and not applied; 0: any number
	ApplyBytes int           // bytes of payloads that may wait to be applied
	ApplyMax   time.Duration // the longest that applying a commitment takes
	Idle       float64       // the delay before an idle log is sealed, as a share of production's delay
	HopMax     time.Duration // the longest that an event takes from one part of a member to another
	// PendingBytes bounds a member's unresolved proposals (0: 1 GiB). InboxBytes bounds the messages that wait for its
	// instances (0: no limit). LargeMessage is the size of a large message in bytes (0: as in production).
	PendingBytes             int64
	InboxBytes, LargeMessage int

	Drift float64 // the maximal drift of a clock, as a share
}

// BodySettings are a run's settings for bodies.
type BodySettings struct {
	// Share is the share of writes that carry their value as a body.
	Share    float64
	Min, Max int // bytes of a body
	// Release is the longest time from a durable drop of the last reference to the release of the body.
	Release      time.Duration
	SegmentBytes int64
	Hedge, Retry time.Duration
	GatherBytes  int64
	LimitSettings
	// Scrub is the interval at which a member verifies its data; 0: never.
	Scrub time.Duration
}

// LimitSettings bound a member's concurrent work on bodies, and its queues. See body.BodyConfig and body.BodyLimits.
// 0: as in production.
type LimitSettings struct {
	Filling, HolderCounts       int
	InboxBytes, Asks, Questions int
	CacheBytes                  int64
}

// weaveSettings are the settings for merged instances.
type weaveSettings struct {
	// Scatter is the share of batches that go to a random instance instead of the best one.
	Scatter float64
	// Lazy is the rate at which a leader notices late that a sibling waits for it.
	Lazy float64
	// Move is the rate at which a member moves to another machine after the number of instances has changed.
	Move float64
}

// firstConfig returns the cluster's initial membership.
func (s *Settings) firstConfig() protocol.Config {
	c := protocol.Config{Profile: s.Profile}
	if s.Alone != 0 {
		c.Members = []protocol.Member{{ID: s.Alone}}
		return c
	}
	for i := range s.Nodes {
		m := protocol.Member{ID: protocol.MemberID(i + 1), Slot: uint8(i)}
		if len(s.Zones) > 0 {
			m.Zone = s.Zones[i]
		}
		if s.Moves {
			m.PeerURLs = []string{home(m.ID)}
		}
		c.Members = append(c.Members, m)
	}
	return c
}

// ByKey reports whether the protocol orders commands only if they have a key in common.
func (s *Settings) ByKey() bool { return s.Protocol.Core.Judged.ByKey }

// Merged reports whether the global log is merged from instances, even from a single one.
func (s *Settings) Merged() bool { return s.Instances > 0 && !s.Keyed }

// grows reports whether other instances can join the one with which the log began.
func (s *Settings) grows() bool { return !s.Keyed && s.Protocol.Grows() }

// mergesWith reports whether instances of a core may be merged into one log.
func (s *Settings) mergesWith(core *protocol.Info) bool {
	if core == s.Protocol.Core {
		return s.Merged() || s.grows() || s.Switches && registry.Merged(core)
	}
	return registry.Merged(core)
}

// growsWith reports whether the number of instances of a core, which may be merged, can change.
func (s *Settings) growsWith(core *protocol.Info) bool {
	return s.mergesWith(core) && !core.Judged.ManyLead
}

// mergedUnder reports whether the instances that begin under a profile are merged.
func (s *Settings) mergedUnder(p *protocol.Profile) bool {
	if p.Core == "" {
		return s.Merged() && !s.Single
	}
	return common.Order.In(p.Values) == string(order.KindNiagara)
}

// begin is the cursor at which the cluster's global log begins.
func (s *Settings) begin() order.Cursor {
	if s.Keyed {
		return order.BeginKeyed(s.Instances)
	}
	return order.Begin(max(1, s.Instances), s.Merged() && !s.Single)
}

// kind is the kind of the log.
func (s *Settings) kind() member.LogKind {
	begin := s.begin()
	core, _ := s.Protocol.Core.Told(s.Core.Own)
	return member.LogKind{Core: core, Order: begin.Kind()}
}

// CoreOf is the core of the instances that begin under a profile.
func (s *Settings) CoreOf(p *protocol.Profile) *protocol.Info {
	if core := registry.CoreOf(p.Core); core != nil {
		return core
	}
	return s.Protocol.Core
}

// newCore creates the core of an instance on a member. One behind a seal has its own settings from the profile alone.
func (s *Settings) newCore(self protocol.MemberID, instance protocol.InstanceID, session protocol.Session, rec protocol.Recovered) (protocol.Core, error) {
	c, core := s.Core, s.CoreOf(&rec.Base.Config.Profile)
	c.Self, c.Instance, c.Session = self, instance, session
	c.Merged = s.mergedUnder(&rec.Base.Config.Profile)
	if rec.Base.Config.Profile.Core != "" {
		var err error
		c.Own, c.Mutant = setting.Values{}, s.mutantOf(core)
		if c, err = common.Tuned(c, core.Settings, &rec.Base.Config.Profile); err != nil {
			return nil, err
		}
	}
	return core.New(c, rec)
}

// Proposing describes how the core of the run's protocol takes proposals.
func (s *Settings) Proposing() *protocol.Proposing { return s.proposingOf(s.Protocol.Core) }

// proposingOf describes how a core takes proposals.
func (s *Settings) proposingOf(core *protocol.Info) *protocol.Proposing {
	p := core.Proposing
	if !s.TunesLanes() {
		p = p.With(s.Core.Own.Over(s.Protocol.Own))
	}
	return &p
}

// TunesLanes reports whether operators may turn lanes on and off.
func (s *Settings) TunesLanes() bool {
	if s.Switches && s.Targets.All {
		return s.Quickest > 0
	}
	return s.Quickest > 0 && !s.Keyed && !s.Switches && s.Protocol.Core.Settings.Has(lane.On)
}

// cells describes the cells of the protocol's core; nil: it begins without.
func (s *Settings) cells() *protocol.CellUse { return s.Protocol.Core.Cells.With(s.Core.Own) }

// accepted returns what reads the entry in a cell of instances that begin under a profile; nil: none.
func (s *Settings) accepted(p *protocol.Profile) func(protocol.Cell) (protocol.Entry, bool) {
	return s.CoreOf(p).Cells.Accepted()
}

// mayHaveCells reports whether a log may have cells, at some time.
func (s *Settings) mayHaveCells() bool { return s.cells() != nil || s.TunesLanes() || s.Switches }

// beginsLate reports whether a log tells its core only when its first leader has written an entry of a certain kind.
func (s *Settings) beginsLate() bool {
	name, _ := s.Protocol.Core.Told(s.Core.Own)
	return s.Protocol.Core.Begins != 0 || slices.ContainsFunc(s.Protocol.Core.Former, func(f protocol.Former) bool {
		return f.Name == name && f.Begins != 0
	})
}

// derive returns the function with which instances derive state, by the core of the profile with which they begin.
func (s *Settings) derive() func(protocol.Config) protocol.Derived {
	own := s.Protocol.Core.Deriving(s.Core.Own)
	return func(first protocol.Config) protocol.Derived {
		core := s.CoreOf(&first.Profile)
		switch {
		case core.Derive == nil:
			return nil
		case first.Profile.Core != "":
			return core.Derive(core.Settings.Only(first.Profile.Values), first)
		}
		return own(first)
	}
}

// epochsTold returns the settings as a member's directory stores them.
func (s *Settings) epochsTold() string {
	return s.Protocol.Core.Settings.Text(epochs.Setting.Name, s.Core.Own)
}

// MutantName returns the mutant for the types of package member. Each type ignores the mutants of others.
func (s *Settings) MutantName() mutant.Name { return mutant.Name(s.Mutant) }

// deciders returns the voters of a configuration that decide.
func (s *Settings) deciders(c *protocol.Config) quorum.Set {
	set := s.quorumsUnder(&c.Profile).Decides(quorum.Of(c))
	if s.Protocol.Quorums != nil {
		set.Need = max(s.Core.WriteQuorum, quorum.Size(len(set.Incoming)))
	}
	return set
}

// JudgeQuorums returns the quorums for entries, of the run's protocol.
func (s *Settings) JudgeQuorums() check.Quorums {
	if s.Protocol.Quorums != nil {
		return check.Quorums{} // these are larger only because of bodies
	}
	return QuorumsOf(&s.Quorums)
}

// quorumsUnder are those of instances that begin under a profile. One that names no core has those of the run's flags.
func (s *Settings) quorumsUnder(p *protocol.Profile) quorum.System {
	if p.Core == "" {
		return s.Quorums
	}
	return quorum.Setting.In(p.Values)
}

// QuorumsOf converts quorums to the type of judges.
func QuorumsOf(q *quorum.System) check.Quorums {
	elect, decide, rows, zones := q.Parts()
	return check.Quorums{Read: elect, Write: decide, Rows: rows, Zones: zones.Count, Lost: zones.Lost, Down: zones.Down}
}

// bodyQuorums returns the quorums for bodies, of the run's protocol.
func (s *Settings) bodyQuorums() check.Quorums {
	q := QuorumsOf(&s.Quorums)
	if s.Protocol.Quorums != nil {
		q.Read, q.Write = s.Core.ReadQuorum, s.Core.WriteQuorum
	}
	return q
}

// BodyTimeout returns the maximal time that a member tries to gather one body.
func (s *Settings) BodyTimeout() time.Duration { return s.GiveUp + 2*s.GatherTime() }

// GatherTime returns the maximal time to reconstruct one body without faults.
func (s *Settings) GatherTime() time.Duration {
	return 8 * (s.Bodies.Hedge + s.Bodies.Retry + 2*s.DelayMax + s.Tick)
}

// Rules returns the settings of the judges.
func (s *Settings) Rules() judge.Rules {
	return judge.Rules{
		Of: s.instanceRules, Instances: s.Instances, Merged: s.Merged() || s.Switches, Single: s.Single,
		First: s.firstConfig(),
	}
}

// instanceRules returns those of instances that begin under a profile.
func (s *Settings) instanceRules(p *protocol.Profile) judge.InstanceRules {
	if p.Core == "" {
		return judge.InstanceRules{Core: s.CoreOf(p), Quorums: s.JudgeQuorums(), BodyQuorums: s.bodyQuorums()}
	}
	system := s.quorumsUnder(p)
	q := QuorumsOf(&system)
	return judge.InstanceRules{Core: s.CoreOf(p), Quorums: q, BodyQuorums: q}
}

// Roomy reports whether no limit of a member with settings of its own is so small that commands of these clients are
// refused, or wait for a snapshot or for each other: with one entry a message, a slow member is late without a fault.
// A relay waits half a heartbeat for the members behind it, so a slow member delays others. So does a leader that
// delays its skips, or has members vote for them, each time that others' values come after its slots. A group of keys
// that moves after few requests is moving most of the time, while all members ask for it. A profile that an operator
// has asked for counts, decided or not: it may be decided later.
func (s *Settings) Roomy(own *Settings) bool {
	c := &own.Core
	table := s.Protocol.Core.Settings
	if s.Targets.All {
		table = registry.Settings()
	}
	detours := table.Detours(s.Tuned.Over(c.Own))
	if how := wpaxos.Steal.In(c.Own); s.Protocol.Core.Settings.Has(wpaxos.Steal) && how.Policy != wpaxos.StealNever && how.After < restless {
		return false
	}
	return own.Backlog == 0 && len(detours) == 0 && own.SnapshotBytes > 1<<20 && c.MaxUncommittedBytes > 64<<10 &&
		c.MaxFrameEntries != 1 && c.MaxFrameBytes > 1 && c.MaxInflightBytes > 1
}

// Widen makes the limits of a member ample, for those that Roomy asks for. It takes effect when the member restarts.
func (s *Settings) Widen() {
	c := &s.Core
	s.Backlog, s.SnapshotBytes = 0, 1<<30
	c.MaxUncommittedBytes = max(c.MaxUncommittedBytes, 1<<20)
	c.MaxFrameEntries, c.MaxFrameBytes, c.MaxInflightBytes = 0, 1<<20, 32<<20
}

// Brisk makes disks and links so fast that a command takes much less than a heartbeat, between regions too: there a
// few round trips are a heartbeat. Links preserve the order, as real ones do.
func (s *Settings) Brisk() {
	s.Swift()
	s.Near()
	h := s.Heartbeat
	s.Reorder = false
	s.DelayMin, s.SyncMin, s.HopMax = min(s.DelayMin, h/200), min(s.SyncMin, h/200), min(s.HopMax, h/500)
	s.DelayMax, s.SyncMax = min(s.DelayMax, h/100), min(s.SyncMax, h/100)
}

// Swift makes disks and links fast, and inboxes large. Heartbeats and timeouts stay, so that waits for them are
// visible.
func (s *Settings) Swift() {
	s.DelayMin, s.SyncMin = min(s.DelayMin, s.Election/200), min(s.SyncMin, s.Election/200)
	s.DelayMax, s.SyncMax = min(s.DelayMax, s.Election/100), min(s.SyncMax, s.Election/100)
	s.HopMax = min(s.HopMax, s.Election/1000)
	s.InboxBytes = 0
}

// Timely makes everything fast enough for elections to succeed. Progress is promised only where
// messages and disks are faster than election timeouts.
func (s *Settings) Timely() {
	e := cmp.Or(s.Quickest, s.Election)
	s.DelayMin, s.SyncMin = min(s.DelayMin, e/20), min(s.SyncMin, e/20)
	s.DelayMax, s.SyncMax = min(s.DelayMax, e/8), min(s.SyncMax, e/8)
	s.HopMax = min(s.HopMax, e/50) // a vote or an entry takes many events
	s.ApplyMax, s.StreamRate = 0, 0
}

// Flexible reports whether quorums are not majorities, for another reason than bodies.
func (s *Settings) Flexible() bool { return !s.Quorums.Majority() }

// DrawIdle draws how a leader without proposals uses its slots. Members may differ in it.
func (s *Settings) DrawIdle(d draw.Chance) {
	s.Core.Own = iss.SkipWait.Set(iss.NoSkip.Set(s.Core.Own, d.Yes(0.5)), 0)
	if d.Yes(0.6) {
		s.Core.Own = iss.SkipWait.Set(s.Core.Own, d.Duration(0, mostSkipWait*s.Heartbeat))
	}
}

// idles reports whether a leader without proposals does not skip at once.
func idles(v setting.Values) bool { return iss.NoSkip.In(v) || iss.SkipWait.In(v) > 0 }

// MostSkipWait returns the longest time that a member may delay another one's value, with its flags or with a profile
// that an operator has asked for; 0: none.
func (s *Settings) MostSkipWait() time.Duration {
	if idles(s.Tuned.Over(s.Core.Own)) {
		return mostSkipWait * s.Heartbeat
	}
	return 0
}

// ProtocolMutant returns the mutant if it belongs to the protocol, otherwise none.
func (s *Settings) ProtocolMutant() protocol.Mutant { return s.mutantOf(s.Protocol.Core) }

// mutantOf returns the mutant if it belongs to a core, otherwise none.
func (s *Settings) mutantOf(core *protocol.Info) protocol.Mutant {
	m := protocol.Mutant(s.Mutant)
	if !slices.ContainsFunc(core.Mutants, func(i mutant.Info) bool { return i.Name == m }) {
		return ""
	}
	return m
}

// OrProduction returns the limits, with production's values for those that are not set. Without a setting nothing is
// cached.
func (s LimitSettings) OrProduction() LimitSettings {
	s.Filling, s.HolderCounts = cmp.Or(s.Filling, body.Filling), cmp.Or(s.HolderCounts, body.HolderCounts)
	s.InboxBytes, s.Asks = cmp.Or(s.InboxBytes, body.InboxBytes), cmp.Or(s.Asks, body.InboxAsks)
	s.Questions = cmp.Or(s.Questions, body.Questions)
	return s
}

// mostSkipWait bounds, in heartbeats, the delay of a skip of a leader without proposals.
const mostSkipWait = 2

// restless is the lowest number of requests after which a group of keys moves, in runs that judge this.
const restless = 4
