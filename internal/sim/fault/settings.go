package fault

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/node"
)

// Settings is everything that the seed draws before a run begins: sizes, rates, latencies, limits. This is swarm
// testing: each run has its own mix, and many features are off. Each part is declared next to the function that draws
// it.
type Settings struct {
	node.Settings
	ClientSettings
	operatorSettings

	// Faults are the rates of faults. Meet says how faults coincide, Aim how they are aimed.
	Faults rates
	Meet   meetSettings
	Aim    aimSettings
}

// operatorSettings say what operators do.
type operatorSettings struct {
	// OddFounder: a founder begins without the initial state of the cluster.
	OddFounder bool
	// Apart: a member that was founded apart is added.
	Apart bool
	// Namesakes: there is another cluster of the same members.
	Namesakes Namesakes
	// Resize: the only membership changes shrink the cluster and grow it again.
	Resize bool
	// Tunes says how operators tune settings.
	Tunes tuneSettings
	// OneWay: during a story of straggle.go, clients write through its instance alone.
	OneWay bool
}

// choose returns the settings that follow from the options.
func choose(o *Options) (s Settings) {
	p, err := ProtocolOf(o.Protocol)
	if err != nil {
		panic(err) // Campaign.Validate gives a better error
	}
	placement, err := PlacementOf(p, o.Placement)
	instances, err2 := InstancesOf(p, o.Order, o.Instances)
	net, err3 := device.ParseNet(o.Net)
	quorums, err4 := QuorumsOf(p, o.Own, o.Nodes)
	if err := errors.Join(err, err2, err3, err4); err != nil {
		panic(err) // as above
	}
	s = Settings{
		Settings: node.Settings{
			ClusterSettings: node.ClusterSettings{
				Protocol: p, Quorums: quorums, Placement: placement,
				Seed: o.Seed, Nodes: o.Nodes, Instances: instances, Mutant: o.Mutant,
			},
			LinkSettings: node.LinkSettings{Distances: device.Distances{Net: net, Farthest: net.Farthest()}},
		},
		Faults: rates{},
	}
	if kind, _ := p.OrderOf(order.Kind(o.Order), o.Instances); kind == order.KindSingle {
		s.Single = true
	}
	if s.Keyed = p.Keyed(order.Kind(o.Order)); s.Keyed {
		s.Instances = cmp.Or(o.Instances, o.Nodes) // a member leads a group
	}
	return s
}

// String describes the settings in some lines, for the head of a trace.
func (s *Settings) String() string {
	text := fmt.Sprintf("%d nodes, heartbeat %s, election %s, tick %s, chaos %s\n",
		s.Nodes, s.Heartbeat, s.Election, s.Tick, s.Chaos)
	text += fmt.Sprintf("%d clients, %d keys, ≤ %d operations, %.0f%% reads, "+
		"think %s, timeout %s, give up %s, padding ≤ %d\n",
		s.Clients, s.Keys, s.Operations, 100*s.Reads, s.Think, s.Patience, s.GiveUp, s.Padding)
	text += s.describeLoad()
	text += fmt.Sprintf("links: %s…%s, drop %.3f, duplicate %.3f, corrupt %.4f, reorder %t, streams break %.2f\n",
		s.DelayMin, s.DelayMax, s.Drop, s.Duplicate, s.Corrupt, s.Reorder, s.StreamBreaks)
	text += s.Distances.Describe()
	text += fmt.Sprintf("disks: sync %s…%s, segments %d, snapshot every %d bytes, own state %t; "+
		"apply ≤ %s, between machines ≤ %s; depth %d, batch %d commands %d bytes; drift %.4f\n",
		s.SyncMin, s.SyncMax, s.SegmentBytes, s.SnapshotBytes, s.Durable, s.ApplyMax, s.HopMax,
		s.Depth, s.BatchCommands, s.BatchBytes, s.Drift)
	r := &s.Core
	if s.Flexible() {
		text += s.Quorums.Tolerates(s.Nodes, nil).String() + "\n"
	}
	text += s.describeBodies() + s.describeWeave() + s.describeUnequal() +
		s.describeMeet() + s.describeAim() + s.describeEpochs() + s.describeTunes() + s.describeZones() +
		s.describeOtherFlags() + s.describeSwitches() + s.describeFit()
	text += fmt.Sprintf("raft: frame %d bytes %d entries, depth %d, inflight %d, uncommitted %d, "+
		"cache %d, parallel append %t, pipeline %t, leases %t; %s\nfaults:",
		r.MaxFrameBytes, r.MaxFrameEntries, r.PipelineDepth, r.MaxInflightBytes, r.MaxUncommittedBytes, r.CacheBytes,
		!r.NoParallelAppend, !r.NoPipeline, r.LeaseReads, r.Own)
	for _, f := range s.Faults.kinds() {
		text += fmt.Sprintf(" %s every %s;", f.Name, s.Faults[f].Round(time.Millisecond))
	}
	return text
}
