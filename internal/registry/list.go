package registry

import (
	"fmt"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/protocol/epaxos"
	"github.com/braidlog/braid/internal/protocol/iss"
	"github.com/braidlog/braid/internal/protocol/multipaxos"
	"github.com/braidlog/braid/internal/protocol/raft"
	"github.com/braidlog/braid/internal/protocol/raft/lane"
	"github.com/braidlog/braid/internal/protocol/slotpaxos"
	"github.com/braidlog/braid/internal/protocol/wpaxos"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// Which members can lead the instances, the protocol's own first. Where instances move to the members that use them,
// they only begin so.
var (
	anywhere = []protocol.Leaders{protocol.LeadersTogether, protocol.LeadersSpread}
	apart    = []protocol.Leaders{protocol.LeadersSpread, protocol.LeadersTogether}
	moving   = []protocol.Leaders{protocol.LeadersBegin}
	all      = []protocol.Leaders{protocol.LeadersAll}
)

// Default is the name of the protocol of a new log if none is named.
const Default = "raft"

// list has the protocols in the order in which help and errors name them.
var list = []*Protocol{
	{
		Name: Default, Does: "one leader, whole copies", Core: &raft.Info,
		Orders:     []order.Kind{order.KindSingle, order.KindNiagara},
		Placements: []protocol.Placement{protocol.PlacementCopy, protocol.PlacementCode},
		Leaders:    anywhere,
	},
	{
		Name: "craft", Does: "raft with placement code", Core: &raft.Info,
		Orders:     []order.Kind{order.KindSingle, order.KindNiagara},
		Placements: []protocol.Placement{protocol.PlacementCode},
		Leaders:    anywhere,
	},
	{
		Name: "rs-raft", Does: "raft that always keeps fragments, with fixed quorums", Core: &raft.Info,
		Orders:     []order.Kind{order.KindSingle},
		Placements: []protocol.Placement{protocol.PlacementRS}, Without: []string{lane.On.Name},
		OnlyFor: "comparison, as it tolerates fewer crashes",
		Quorums: rsQuorums,
	},
	{
		Name: "niagara", Does: "several instances of raft, merged into one log", Core: &raft.Info,
		Orders:     []order.Kind{order.KindNiagara},
		Placements: []protocol.Placement{protocol.PlacementCopy, protocol.PlacementCode}, Without: []string{lane.On.Name},
		Leaders: anywhere,
	},
	{
		Name: "multi-raft", Does: "a group of raft for each share of the keys, without a common order", Core: &raft.Info,
		Orders:     []order.Kind{order.KindKeyed},
		Placements: []protocol.Placement{protocol.PlacementCopy}, Without: []string{lane.On.Name},
		Leaders: apart,
		OnlyFor: "comparison, as etcd's API needs one order of all keys",
	},
	{
		Name: "lcr", Does: "followers spread the data, the leader only confirms it", Core: &raft.Info,
		Own:        lane.On.Set(setting.Values{}, true),
		Orders:     []order.Kind{order.KindSingle},
		Placements: []protocol.Placement{protocol.PlacementCopy, protocol.PlacementCode},
	},
	{
		Name: "multi-paxos", Does: "a leader proposes slot after slot under one ballot", Core: &multipaxos.Info,
		Orders:     []order.Kind{order.KindSingle},
		Placements: []protocol.Placement{protocol.PlacementCopy},
	},
	{
		Name: "iss", Does: "every member leads, each in slots of its own", Core: &iss.Info,
		Orders:     []order.Kind{order.KindSingle, order.KindNiagara},
		Placements: []protocol.Placement{protocol.PlacementCopy},
		Leaders:    all,
	},
	{
		Name: "epaxos", Does: "every member proposes, and only commands of a key are in order", Core: &epaxos.Info,
		Orders:     []order.Kind{order.KindSingle},
		Placements: []protocol.Placement{protocol.PlacementCopy},
		OnlyFor:    "comparison, as etcd's API needs one order of all keys",
	},
	{
		Name: "wpaxos", Does: "a log and an owner for each share of the keys, which moves to who uses them",
		Core:       &wpaxos.Info,
		Orders:     []order.Kind{order.KindKeyed},
		Placements: []protocol.Placement{protocol.PlacementCopy},
		Leaders:    moving,
		OnlyFor:    "comparison, as etcd's API needs one order of all keys",
	},
	{
		Name: "slotpaxos", Does: "Paxos for each entry, to learn from", Core: &slotpaxos.Info,
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
