package fault

import (
	"math/rand/v2"
	"time"

	"github.com/braidlog/braid/internal/sim/client"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/judge"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/internal/sim/world"
	"github.com/braidlog/braid/protocol"
)

// World is one simulated cluster with its clients, links, disks, clocks and faults. One seed decides everything that
// happens in it. It runs in one goroutine.
type World struct {
	node.Environment
	Set     Settings
	Clients *client.Clients

	// Pass, if set, decides which messages links carry. It is for scenarios.
	Pass func(*protocol.Message) bool

	ongoing
	mergeTimes
}

// ongoing is the state of faults and operations in progress.
type ongoing struct {
	burst float64 // additional share of messages that are lost
	rests rests
	late  bool // a member is late: see delayMember
	// straggling is the current story of straggle.go; nil: there is none.
	straggling *straggling
	// promising is the current story of promise.go; nil: there is none.
	promising *promising
	held      *standstill // of links of a member; nil: no link is held
	// growing: the operator adds members, after removals. See Settings.Resize.
	growing bool
	// alone has the worlds of members that were founded apart.
	alone map[protocol.MemberID]*apartWorld
	// moved counts the changes of members' addresses.
	moved int
}

// mergeTimes limit the time from a decision until it is applied.
type mergeTimes struct {
	// Merging, if set, is the maximal time until a decided slot is applied (N7).
	Merging time.Duration
	// detours is the total time of elections that are not part of merging: in terms without a leader, and of new
	// instances.
	detours time.Duration
	grown   protocol.Position // the latest position at which a member began new instances
}

// New makes a world with these settings, in which nothing has happened yet.
func New(set Settings, rng *rand.Rand, out *world.Trace) *World {
	set.Bodies.LimitSettings = set.Bodies.LimitSettings.OrProduction()
	set.Moves, set.Rots = set.Faults[faultMove] > 0, set.Faults[faultRot] > 0
	w := &World{Set: set, Environment: node.Environment{
		Base: world.Base{Seed: set.Seed, Tick: set.Tick, Rand: rng, Out: out}, Chances: draw.Begin(set.Seed),
		Acquainted: map[device.Pair]uint64{},
	}}
	w.Environment.Set = &w.Set.Settings
	w.Clients = client.New(&w.Environment, &w.Set.ClientSettings)
	w.Observer, w.alone = w, map[protocol.MemberID]*apartWorld{}
	w.Orders.ByKey, w.Orders.Keys = set.ByKey(), set.Keys
	if set.Keyed {
		w.Orders.Groups = set.Instances
	}
	w.History = history.New(&w.Base, &w.Orders)
	w.Court = judge.NewCourt(set.Rules(), &w.Base)
	w.Court.Fits = set.judgesOfFits()
	w.Judge = w.Court.Check
	for i := range set.Nodes {
		w.Members = append(w.Members, node.NewMember(&w.Environment, protocol.MemberID(i+1)))
	}
	return w
}
