package registry

import (
	"fmt"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/protocol/epaxos"
	"github.com/braidlog/braid/internal/protocol/iss"
	"github.com/braidlog/braid/internal/protocol/iss/epochs"
	"github.com/braidlog/braid/internal/protocol/multipaxos"
	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/raft"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/slotpaxos"
	"github.com/braidlog/braid/internal/protocol/wpaxos"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// raftCore is Raft with its placements.
var raftCore = &Core{
	Name:    "raft",
	Codec:   message.Codec,
	Wrote:   raft.Wrote,
	Mutants: raft.Mutants[:],
	New:     func(s protocol.Settings, rec protocol.Recovered) (protocol.Core, error) { return raft.New(s, rec) },
}

// lcrCore is Raft with lanes. Members with and without lanes do not understand each other.
var lcrCore = &Core{
	Name:  "lcr",
	Codec: message.Codec,
	Cells: true, Derive: always(raft.Derive), Section: raft.LaneSection,
	Behind: raft.Behind,
	Wrote:  raft.WroteLanes, Begins: protocol.EntryGeneration,
	Proposing: protocol.Proposing{Accepted: true, Path: raft.PathOf},
	Mutants:   raft.LaneMutants[:],
	New: func(s protocol.Settings, rec protocol.Recovered) (protocol.Core, error) {
		s.Lanes = true
		return raft.New(s, rec)
	},
}

// multiPaxos is Paxos with one phase 1 for all slots to come.
var multiPaxos = &Core{
	Name:  "multi-paxos",
	Codec: multipaxos.Codec,
	Cells: true, Accepted: paxos.Accepted,
	Judged:   protocol.Judged{DecidedOnly: true},
	Settings: multipaxos.Settings,
	Wrote:    multipaxos.Wrote, Behind: paxos.Behind,
	Mutants: multipaxos.Mutants[:],
	New: func(s protocol.Settings, rec protocol.Recovered) (protocol.Core, error) {
		return multipaxos.New(s, rec)
	},
}

// issCore is many leaders, each of which proposes in slots of its own.
var issCore = &Core{
	Name:  "iss",
	Codec: iss.Codec,
	Cells: true, Accepted: paxos.Accepted,
	Judged:   protocol.Judged{DecidedOnly: true, ManyLead: true},
	Settings: iss.Settings,
	Derive:   deriveEpochs, Section: epochs.SectionName,
	Wrote: iss.Wrote, Behind: paxos.Behind,
	Mutants: iss.Mutants[:],
	New:     newISS,
}

func newISS(s protocol.Settings, rec protocol.Recovered) (protocol.Core, error) {
	if err := s.Complete(iss.Settings); err != nil {
		return nil, err
	}
	set, err := epochs.Chosen(epochs.Setting.In(s.Own))
	if err != nil {
		return nil, err
	}
	return iss.New(s, set, rec)
}

func deriveEpochs(own setting.Values, first protocol.Config) protocol.Derived {
	set, err := epochs.Chosen(epochs.Setting.In(own))
	if err != nil {
		panic(err) // Complete has seen them
	}
	return epochs.New(set, first)
}

// epaxosCore is EPaxos.
var epaxosCore = &Core{
	Name:  "epaxos",
	Codec: epaxos.Codec,
	Cells: true, Derive: always(epaxos.Derive), Section: epaxos.SectionName,
	Judged:    protocol.Judged{DecidedOnly: true, ByKey: true, Fixed: true},
	Wrote:     epaxos.Wrote,
	Proposing: protocol.Proposing{Keys: true},
	Mutants:   epaxos.Mutants[:],
	New:       func(s protocol.Settings, rec protocol.Recovered) (protocol.Core, error) { return epaxos.New(s, rec) },
}

// wpaxosCore is one group of keys of WPaxos: multi-Paxos whose leader hands the group over to who asks for it.
var wpaxosCore = &Core{
	Name:  "wpaxos",
	Codec: multipaxos.Codec,
	Cells: true, Accepted: paxos.Accepted, Roams: true,
	Judged:   protocol.Judged{DecidedOnly: true, Fixed: true},
	Settings: wpaxos.Settings,
	Wrote:    multipaxos.Wrote,
	Mutants:  wpaxos.Mutants[:],
	New:      func(s protocol.Settings, rec protocol.Recovered) (protocol.Core, error) { return wpaxos.New(s, rec) },
}

// always is what no settings change.
func always(derive func(protocol.Config) protocol.Derived) func(setting.Values, protocol.Config) protocol.Derived {
	return func(_ setting.Values, first protocol.Config) protocol.Derived { return derive(first) }
}

// slotPaxos is Paxos for each slot.
var slotPaxos = &Core{
	Name:  "slotpaxos",
	Codec: slotpaxos.Codec,
	Cells: true, Accepted: slotpaxos.Accepted, Derive: always(slotpaxos.Derive), Section: slotpaxos.ChainSection,
	Judged:    protocol.Judged{DecidedOnly: true},
	Wrote:     slotpaxos.Wrote,
	Proposing: protocol.Proposing{Accepted: true},
	Mutants:   slotpaxos.Mutants[:],
	New:       func(s protocol.Settings, rec protocol.Recovered) (protocol.Core, error) { return slotpaxos.New(s, rec) },
}

// list has the protocols in the order in which help and errors name them.
var list = []*Protocol{
	{
		Name: "raft", Does: "one leader, whole copies", Core: raftCore,
		Orders:     []order.Kind{order.KindSingle, order.KindNiagara},
		Placements: []protocol.Placement{protocol.PlacementCopy, protocol.PlacementCode},
	},
	{
		Name: "craft", Does: "raft with placement code", Core: raftCore,
		Orders:     []order.Kind{order.KindSingle, order.KindNiagara},
		Placements: []protocol.Placement{protocol.PlacementCode},
	},
	{
		Name: "rs-raft", Does: "raft that always keeps fragments, with fixed quorums", Core: raftCore,
		Orders:     []order.Kind{order.KindSingle},
		Placements: []protocol.Placement{protocol.PlacementRS},
		OnlyFor:    "comparison, as it stands fewer crashes",
		Quorums:    rsQuorums,
	},
	{
		Name: "niagara", Does: "several instances of raft, woven into one log", Core: raftCore,
		Orders:     []order.Kind{order.KindNiagara},
		Placements: []protocol.Placement{protocol.PlacementCopy, protocol.PlacementCode},
	},
	{
		Name: "multi-raft", Does: "a group of raft for each share of the keys, without a common order", Core: raftCore,
		Orders:     []order.Kind{order.KindKeyed},
		Placements: []protocol.Placement{protocol.PlacementCopy},
		OnlyFor:    "comparison, as etcd's API needs one order of all keys",
	},
	{
		Name: "lcr", Does: "followers spread the data, the leader only confirms it", Core: lcrCore,
		Orders:     []order.Kind{order.KindSingle},
		Placements: []protocol.Placement{protocol.PlacementCopy, protocol.PlacementCode},
	},
	{
		Name: "multi-paxos", Does: "a leader proposes slot after slot under one ballot", Core: multiPaxos,
		Orders:     []order.Kind{order.KindSingle},
		Placements: []protocol.Placement{protocol.PlacementCopy},
	},
	{
		Name: "iss", Does: "every member leads, each in slots of its own", Core: issCore,
		Orders:     []order.Kind{order.KindSingle},
		Placements: []protocol.Placement{protocol.PlacementCopy},
	},
	{
		Name: "epaxos", Does: "every member proposes, and only commands of a key are in order", Core: epaxosCore,
		Orders:     []order.Kind{order.KindSingle},
		Placements: []protocol.Placement{protocol.PlacementCopy},
		OnlyFor:    "comparison, as etcd's API needs one order of all keys",
	},
	{
		Name: "wpaxos", Does: "a log and an owner for each share of the keys, which moves to who uses them", Core: wpaxosCore,
		Orders:     []order.Kind{order.KindKeyed},
		Placements: []protocol.Placement{protocol.PlacementCopy},
		OnlyFor:    "comparison, as etcd's API needs one order of all keys",
	},
	{
		Name: "slotpaxos", Does: "Paxos for each entry, to learn from", Core: slotPaxos,
		Orders:     []order.Kind{order.KindSingle},
		Placements: []protocol.Placement{protocol.PlacementCopy},
		OnlyFor:    "showing how a protocol is written",
	},
}

// RSFragments is how many fragments make a body whole in the paper's comparison with RS-Raft.
const RSFragments = 3

// rsQuorums are those of the paper: equal, and as small as they can be if any two meet in k members
// (docs/internals/craft.md, 2.7).
func rsQuorums(voters, k int) (quorum int, err error) {
	if quorum = (voters + k + 1) / 2; quorum > voters {
		return 0, fmt.Errorf("quorums of %d voters cannot meet in %d", voters, k)
	}
	return quorum, nil
}
