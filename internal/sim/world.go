package sim

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/erasure"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/internal/sim/world"
	"github.com/braidlog/braid/protocol"
)

// World is one simulated cluster with its clients, links, disks, clocks and faults. One
// seed decides everything that happens in it. It runs in one goroutine.
type World struct {
	world.Base
	set Settings
	// births draws the identities of logs and the marks of lives.
	births *rand.Rand
	lossy  chance // draws what concerns lost disks
	pauses chance // draws what concerns the writers of logs
	early  chance // draws which writes ask for an early answer, and what tokens are used for
	// tokens are the last ones that clients were given, of operations that they name.
	tokens []givenToken
	// acceptedOps are the operations that were accepted and had no effect when that was looked at last.
	// acceptedAt is where the last of the others stands.
	acceptedOps []*operation
	acceptedAt  protocol.Position
	pipes       chance // draws what concerns clients that propose without waiting
	astray      chance // draws which members are started with another log's state machine
	born        chance // draws what concerns the state with which the cluster begins
	apart       chance // draws what concerns members that were founded apart
	namesake    chance // draws what concerns another cluster of the same members
	withdrawals chance // draws which commands are withdrawn, and when
	hops        chance // draws how long events take from one part of a member to another
	// acquainted is, for a pair of members, the highest life of the second with which the first has
	// had a link.
	acquainted map[device.Pair]uint64

	members []*Member // ids 1 …, in order; also those added later
	net     device.Network
	burst   float64 // share of messages that is lost besides, at present
	// pass, if set, decides which messages links carry. It is for scenarios.
	pass func(*protocol.Message) bool
	// route, if set, is the instance that takes all batches. It is for scenarios.
	route protocol.InstanceID
	// merging, if set, is how long it may take until a decided slot is applied (N7).
	merging time.Duration
	// detours is how long elections have taken that are no part of merging, all in all: in terms in
	// which nobody led, and of new instances.
	detours time.Duration

	// allJudges judge the instances. The first one is embedded too, because it is often the only
	// one.
	allJudges []*instanceJudges
	*instanceJudges
	weave    *check.Weave
	grown    protocol.Round // from which round on there were new instances last, as far as a member has come
	shapes   []shaped       // from how many instances the global log was woven, one after the other
	executed order.Slot     // the slot up to which the member that is furthest has applied the global log
	orders   machine.Orders // of commands
	history  check.Recorder
	ops      []*operation // by number
	// acked is how many writes were acknowledged. ackedAt is the last position of
	// these, in each group of a keyed order.
	acked   int
	ackedAt map[protocol.InstanceID]protocol.Position
	met     map[protocol.Index]uint64 // what snapshots at an index have, where logs differ: see judgeMet
	calm    bool                      // no more faults: the second phase
	rests   rests
	late    bool // a member is late: see beLate
	// straggling is a story in which members change while somebody does not know of all bodies; nil: none is told.
	straggling *straggling
	stragglers chance
	// promising is a story in which members are about to vote when they hear of the leader again; nil: none is told.
	promising *promising
	promises  chance
	held      *standstill // of links of a member; nil: all links move
	// growing: the operator adds members, after he removed some. See Settings.Resize.
	growing bool
	// moved is how often members got another address.
	moved int

	messages int // sent so far
}

// newWorld makes a world with these settings, in which nothing has happened yet.
func newWorld(set Settings, rng *rand.Rand, out *world.Trace) *World {
	set.Bodies.limitSettings = set.Bodies.limitSettings.orProduction()
	w := &World{Base: world.Base{Seed: set.Seed, Tick: set.Tick, Rand: rng, Out: out}, set: set, births: chanceOf(set.Seed, "identities").rng, lossy: chanceOf(set.Seed, "losses"), hops: chanceOf(set.Seed, "hops"),
		pipes: chanceOf(set.Seed, "pipe clients"), early: chanceOf(set.Seed, "early writes"), pauses: chanceOf(set.Seed, "pauses"),
		withdrawals: chanceOf(set.Seed, "withdrawn writes"), astray: chanceOf(set.Seed, "astray lives"), stragglers: chanceOf(set.Seed, "straggling"),
		promises: chanceOf(set.Seed, "promising"), born: chanceOf(set.Seed, "births in a run"), apart: chanceOf(set.Seed, "apart in a run"), namesake: chanceOf(set.Seed, "mistaken members"),
		acquainted: map[device.Pair]uint64{}, ackedAt: map[protocol.InstanceID]protocol.Position{}, met: map[protocol.Index]uint64{}, weave: check.NewWeave(set.Instances)}
	w.Judge = w.judgeStep
	w.orders.ByKey = set.byKey()
	if set.Keyed {
		w.orders.Groups = set.Instances
	}
	w.instanceJudges, w.shapes = w.judgesOf(firstInstance), []shaped{{instances: max(1, set.Instances)}}
	for i := range set.Nodes {
		w.members = append(w.members, newMember(w, protocol.MemberID(i+1)))
	}
	return w
}

// instanceJudges are the judges of one instance.
type instanceJudges struct {
	instance protocol.InstanceID
	ledger   *check.Ledger
	bodies   *check.Bodies
	ended    bool   // the instance is retired:
	last     uint64 // entries after this one are void
	// configs are the decided memberships.
	configs []decidedConfig
	// led are the members that led the instance.
	led map[protocol.MemberID]bool
	// stood is the latest term in which a member stood for election, won the latest in which one leads.
	stood, won protocol.Term
	// mustSee is the last decided entry that a read must see.
	mustSee uint64
	// readIn is the latest term in whose beginning replaced leaders were asked for reads; see askReplaced.
	readIn protocol.Term
	// left are the members that a decided configuration left out for ever.
	left map[protocol.MemberID]bool
	// electorates judges what is accepted.
	electorates electorates
	// sections is what members derived from the log up to an index.
	sections map[protocol.Index]string
}

// leave notes a decided configuration, and the members that it leaves out for ever.
func (c *instanceJudges) leave(config *protocol.Config, now time.Duration) {
	c.configs = append(c.configs, decidedConfig{*config, now})
	for _, id := range config.Removed {
		if !config.Voter(id) {
			c.left[id] = true
		}
	}
}

// configureEnded tells the judges of retired instances which membership the first instance has
// decided, if these are the first instance's judges. A retired instance changes no more: members keep
// its bodies as the first instance says.
func (w *World) configureEnded(by *instanceJudges) (err error) {
	if by != w.instanceJudges {
		return nil
	}
	config := &by.configs[len(by.configs)-1].config
	for _, c := range w.allJudges {
		if c.ended {
			err = errors.Join(err, c.bodies.Configure(votersOf(config), firstSlots(config)))
		}
	}
	return err
}

// end notes that the instance is retired. Nobody needs the bodies of void entries.
func (c *instanceJudges) end(last uint64) {
	c.ended, c.last = true, last
	for _, i := range c.bodies.Live() {
		if i > last {
			c.bodies.Drop(i)
		}
	}
}

// judgesOf returns the judges of an instance, and makes them if there are none yet.
func (w *World) judgesOf(instance protocol.InstanceID) *instanceJudges {
	if c := w.judges(instance); c != nil {
		return c
	}
	first := w.set.firstConfig()
	return w.courtWith(instance, &first)
}

// judges returns the judges of an instance, or nil if there are none yet.
func (w *World) judges(instance protocol.InstanceID) *instanceJudges {
	for _, c := range w.allJudges {
		if c.instance == instance {
			return c
		}
	}
	return nil
}

// courtWith is judgesOf with the instance's first members. It uses them only if there are no judges
// yet.
func (w *World) courtWith(instance protocol.InstanceID, first *protocol.Config) *instanceJudges {
	if c := w.judges(instance); c != nil {
		return c
	}
	c := &instanceJudges{left: map[protocol.MemberID]bool{}, led: map[protocol.MemberID]bool{}, instance: instance, ledger: check.NewLedger(), bodies: check.NewBodies(erasure.Cut)}
	c.ledger.Hints, c.ledger.Epochs, c.ledger.Apart = w.set.protocol.Core.Judged.DecidedOnly, w.set.protocol.Core.Judged.ManyLead, w.set.byKey()
	c.bodies.Appends = c.ledger.Hints
	c.ledger.Quorums = w.set.judgeQuorums()
	c.bodies.Flexible(w.set.bodyQuorums())
	w.Violate(0, c.bodies.Configure(votersOf(first), firstSlots(first)))
	c.leave(first, w.Now())
	w.allJudges = append(w.allJudges, c)
	return c
}

// judgeStep judges the bodies of all instances after each event.
func (w *World) judgeStep() {
	for _, c := range w.allJudges {
		w.Violate(0, c.bodies.Check())
	}
}

// member returns the member with that id.
func (w *World) member(id protocol.MemberID) *Member { return w.members[id-1] }
