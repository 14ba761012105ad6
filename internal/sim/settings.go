package sim

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// Settings is everything that the seed draws before a run begins: sizes, rates, latencies, limits.
// This is swarm testing: each run has its own mix, and many features are off.
type Settings struct {
	protocol  *registry.Protocol
	quorums   quorum.System
	placement protocol.Placement
	Seed      uint64
	Nodes     int
	Mutant    string
	// Instances is how many instances are woven into the global log; 0: one instance's log is the
	// global log.
	Instances int
	// Keyed: the instances are groups of keys, which have no common order.
	Keyed bool

	Heartbeat, Election, Tick time.Duration
	Chaos                     time.Duration // how long the first phase lasts

	// clients
	Clients, Keys int
	Operations    int // at most, over the run
	Think         time.Duration
	Reads         float64 // share of reads
	Padding       int     // most bytes by which a command is padded
	Patience      time.Duration
	GiveUp        time.Duration

	Load loadSettings

	// links
	device.Distances
	Drop, Duplicate, Corrupt float64
	Reorder                  bool
	StreamBreaks             float64

	// disks
	SyncMin, SyncMax time.Duration
	SegmentBytes     int64
	SnapshotBytes    int
	Backlog          int   // entries of an instance that may be committed and not applied; 0: any number
	KeepLogBytes     int64 // of log that is kept for members that catch up
	StreamRate       int   // bytes a second of a snapshot's stream; 0: a million

	// CopyOnWrite: while a disk is full, files of the log and of the bodies cannot be overwritten.
	CopyOnWrite bool
	// Shortage is how often a disk is not full at once, but has about what the member needs.
	Shortage float64

	ApplyBytes int           // bytes of payloads that may wait to be applied
	ApplyMax   time.Duration // the longest that applying a commitment takes
	Idle       float64       // how soon an idle log is sealed, as a share of what production waits
	HopMax     time.Duration // the longest that an event takes from one part of a member to another
	Durable    bool          // the state machine keeps its own state on disk

	Depth, BatchCommands, BatchBytes int

	Drift  float64           // the most by which a clock runs fast or slow, as a share
	Core   protocol.Settings // of every instance, without Self and Instance
	Bodies bodySettings
	Weave  weaveSettings

	Meet meetSettings
	Aim  aimSettings

	// PendingBytes bounds what a member has proposed and not settled (0: 1 GiB). InboxBytes bounds
	// the messages that wait for its instances (0: no limit). LargeMessage is how many bytes make a
	// message large (0: as in production).
	PendingBytes             int64
	InboxBytes, LargeMessage int
	// Astray is how often a member is started with a state machine that is not of its log.
	Astray float64
	// Birth names the state with which the cluster begins; "": an empty one. OddFounder: a founder begins without it.
	Birth      string
	OddFounder bool
	// Apart: a member that was founded apart is added. Alone is the only member of a world; 0: there are more.
	Apart bool
	Alone protocol.MemberID
	// Namesakes: there is another cluster of the same members.
	Namesakes namesakes
	// Noted: every directory notes what its log is from the first start on. A core that the registry does not have
	// cannot be found out later.
	Noted bool
	// Unequal: members may have settings of their own.
	Unequal bool
	// Resize: as a change of the membership, the operator only makes the cluster smaller and
	// larger.
	Resize bool
	// OneWay: while a story is told, clients write through its instance alone. See straggle.go.
	OneWay bool
	// Faults is how often faults of each kind happen.
	Faults rates
}

// choose returns the settings that the options decide.
func choose(o *Options) (s Settings) {
	p, err := protocolOf(o.Protocol)
	if err != nil {
		panic(err) // Campaign.Validate gives a better error
	}
	placement, err := placementOf(p, o.Placement)
	instances, err2 := instancesOf(p, o.Order, o.Instances)
	net, err3 := device.ParseNet(o.Net)
	quorums, err4 := quorumsOf(p, o.Own, o.Nodes)
	if err := errors.Join(err, err2, err3, err4); err != nil {
		panic(err) // as above
	}
	s = Settings{Seed: o.Seed, Nodes: o.Nodes, Instances: instances, Mutant: o.Mutant, Distances: device.Distances{Net: net, Farthest: net.Farthest()}, protocol: p, quorums: quorums, placement: placement, Faults: rates{}}
	if s.Keyed = p.Keyed(order.Kind(o.Order)); s.Keyed {
		s.Instances = cmp.Or(o.Instances, o.Nodes) // a member leads a group
	}
	return s
}

func (s *Settings) drawClients(d draw.Chance) {
	s.Clients = 1 + d.Below(6)
	s.Keys = 1 + d.Below(4)
	s.Operations = 20 + d.Below(280)
	s.Think = d.Duration(0, s.Chaos/20)
	s.Reads = d.Share()
	s.Padding = d.Limit(0, 100, 3000)
	s.Patience = s.Election * time.Duration(1+d.Below(6))
	s.GiveUp = s.Election * time.Duration(2+d.Below(10))
	s.Depth = d.Limit(0, 1, 4)
	s.BatchCommands = d.Limit(1, 3, 1000)
	s.BatchBytes = d.Limit(1, 500, 1<<20)
	if d.Yes(0.4) {
		s.ApplyMax = d.Duration(0, s.Election)
	}
}

func (s *Settings) drawLinks(d draw.Chance) {
	s.DelayMin = d.Duration(0, s.Heartbeat/4)
	s.DelayMax = s.DelayMin + d.Duration(0, s.Heartbeat)
	s.Drop = d.Rate(0.2)
	s.Duplicate = d.Rate(0.2)
	s.Corrupt = d.Rate(0.02)
	s.Reorder = d.Yes(0.5)
	s.StreamBreaks = d.Rate(0.8)
}

func (s *Settings) drawDisks(d draw.Chance) {
	s.SyncMin = d.Duration(0, s.Heartbeat/10)
	s.SyncMax = s.SyncMin + d.Duration(0, s.Heartbeat)
	s.SegmentBytes = int64(d.Limit(4<<10, 16<<10, 128<<10))
	s.SnapshotBytes = d.Limit(300, 5000, 1<<30)
	s.Durable = d.Yes(0.3) && !s.Keyed
}

func (s *Settings) drawRaft(d draw.Chance) {
	s.Core = protocol.Settings{
		Instance: firstInstance, Heartbeat: s.Heartbeat, ElectionTimeout: s.Election,
		MaxFrameBytes:       d.Limit(1, 2000, 1<<20),
		MaxFrameEntries:     d.Limit(0, 1, 3),
		PipelineDepth:       d.Limit(0, 1, 3),
		MaxInflightBytes:    d.Limit(1, 5000, 32<<20),
		MaxUncommittedBytes: d.Limit(1, 8, 1<<10) * s.Clients * (s.Padding + 500), // one batch at least
		CacheBytes:          d.Limit(1, 2000, 64<<20),
		NoParallelAppend:    d.Yes(0.2),
		NoPipeline:          d.Yes(0.2),
		LeaseReads:          d.Yes(0.3),
	}
	s.drawClocks(d)
	s.Core.Mutant = s.protocolMutant()
}

// drawChurn sometimes makes leaders change faster than they can replicate.
func (s *Settings) drawChurn(d draw.Chance) {
	if !d.Yes(0.1) {
		return
	}
	s.Faults[faultCrash] = s.Election * time.Duration(1+d.Below(3))
	s.Faults[faultIsolate] = s.Election * time.Duration(1+d.Below(3))
	s.DelayMax = s.DelayMin + 2*s.Heartbeat
	s.Core.MaxFrameEntries, s.Core.NoPipeline = 1, true
	s.Think = s.Heartbeat
	s.Chaos *= 2
}

// watchLeaders makes clients write at new leaders and read at those that may be leaders no more.
func (s *Settings) watchLeaders(d draw.Chance) {
	s.Clients, s.Keys, s.Operations, s.Reads = 6+d.Below(6), 1, 400, 0.3
	s.Think = max(s.Heartbeat, 2*s.Chaos*time.Duration(s.Clients)/time.Duration(s.Operations))
	s.Patience = s.Election
	s.Load.Pinned, s.Load.Chase, s.Load.Overwrite = 0.5, 0.5+0.5*d.Share(), 0.2
	s.Load.Crowd = 0.5 + 0.5*d.Share()
}

// newCore makes the protocol's core of a member.
func (s *Settings) newCore(self protocol.MemberID, instance protocol.InstanceID, session protocol.Session, rec protocol.Recovered) (protocol.Core, error) {
	c := s.Core
	c.Self, c.Instance, c.Session = self, instance, session
	return s.protocol.Core.New(c, rec)
}

// codec is what is known of the messages of the protocol's core.
func (s *Settings) codec() *protocol.Codec { return s.protocol.Core.Codec }

// firstConfig is the membership that the cluster begins with.
func (s *Settings) firstConfig() protocol.Config {
	var c protocol.Config
	if s.Alone != 0 {
		return protocol.Config{Members: []protocol.Member{{ID: s.Alone}}}
	}
	for i := range s.Nodes {
		m := protocol.Member{ID: protocol.MemberID(i + 1), Slot: uint8(i)}
		if s.moves() {
			m.PeerURLs = []string{home(m.ID)}
		}
		c.Members = append(c.Members, m)
	}
	return c
}

func (s *Settings) String() string {
	text := fmt.Sprintf("%d nodes, heartbeat %s, election %s, tick %s, chaos %s\n", s.Nodes, s.Heartbeat, s.Election, s.Tick, s.Chaos)
	text += fmt.Sprintf("%d clients, %d keys, ≤ %d operations, %.0f%% reads, think %s, timeout %s, give up %s, padding ≤ %d\n",
		s.Clients, s.Keys, s.Operations, 100*s.Reads, s.Think, s.Patience, s.GiveUp, s.Padding)
	text += s.describeLoad()
	text += fmt.Sprintf("links: %s…%s, drop %.3f, duplicate %.3f, corrupt %.4f, reorder %t, streams break %.2f\n",
		s.DelayMin, s.DelayMax, s.Drop, s.Duplicate, s.Corrupt, s.Reorder, s.StreamBreaks)
	text += s.Distances.Describe()
	text += fmt.Sprintf("disks: sync %s…%s, segments %d, snapshot every %d bytes, own state %t; apply ≤ %s, between machines ≤ %s; depth %d, batch %d commands %d bytes; drift %.4f\n",
		s.SyncMin, s.SyncMax, s.SegmentBytes, s.SnapshotBytes, s.Durable, s.ApplyMax, s.HopMax, s.Depth, s.BatchCommands, s.BatchBytes, s.Drift)
	r := &s.Core
	if s.flexible() {
		text += s.quorums.Tolerates(s.Nodes).String() + "\n"
	}
	text += s.describeBodies() + s.describeWeave() + s.describeUnequal() + s.describeMeet() + s.describeAim() + s.describeEpochs()
	text += fmt.Sprintf("raft: frame %d bytes %d entries, depth %d, inflight %d, uncommitted %d, cache %d, parallel append %t, pipeline %t, leases %t; %s\nfaults:",
		r.MaxFrameBytes, r.MaxFrameEntries, r.PipelineDepth, r.MaxInflightBytes, r.MaxUncommittedBytes, r.CacheBytes,
		!r.NoParallelAppend, !r.NoPipeline, r.LeaseReads, r.Own)
	for _, f := range s.Faults.kinds() {
		text += fmt.Sprintf(" %s every %s;", f.Name, s.Faults[f].Round(time.Millisecond))
	}
	return text
}
