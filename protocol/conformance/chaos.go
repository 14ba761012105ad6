package conformance

import (
	"cmp"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/braidlog/braid/protocol"
)

// dice has the probabilities of faults in thousandths; they are drawn from the seed, so that some runs have faults
// that others do not.
type dice struct {
	rng                          *rand.Rand
	late, lost, twice, lazy, lag int // of a message or write
	crash, power, cut            int // of a turn
	propose, read, compact       int
	change, transfer             int
	fast                         int // how much faster the fastest clock is
	members                      int
	next                         protocol.MemberID
	parcels                      int // the maximal number of deliveries in a turn
}

func faultsOf(seed uint64, members int) *dice {
	rng := rand.New(rand.NewPCG(seed, 5))
	draw := func(most int) int {
		if rng.IntN(3) == 0 {
			return 0
		}
		return rng.IntN(most)
	}
	return &dice{
		rng: rng, late: draw(500), lost: draw(100), twice: draw(100), lag: draw(700), lazy: draw(400),
		crash: draw(20), power: draw(4), cut: draw(20),
		propose: 20 + draw(200), read: draw(100), compact: draw(20), change: draw(10), transfer: draw(10),
		fast: draw(100), members: members, next: protocol.MemberID(members + 1), parcels: 1 + rng.IntN(5),
	}
}

func (d *dice) roll(p int) bool { return d.rng.IntN(1000) < p }

func (d *dice) node(net *Net) *Node { return net.Nodes[d.rng.IntN(len(net.Nodes))] }

// chaos is one turn in a cluster under faults.
func (net *Net) chaos(d *dice, turn int) {
	if turn%5 == 0 {
		for _, n := range net.Nodes {
			rate := 1000 + d.fast*int(n.ID%3)/2 // clocks differ by d.fast thousandths at most
			net.Tick(n.ID, Pace*5*time.Duration(rate)/1000)
		}
	}
	for range 1 + d.rng.IntN(d.parcels) {
		if len(net.Queue) > 0 {
			net.chaosParcel(d)
		}
	}
	if n := d.node(net); !d.roll(d.lag) {
		net.SyncOne(n.ID)
	}
	net.chaosClients(d)
	net.chaosMembers(d)
	if net.Merged {
		net.chaosMerged(d)
	}
	if net.Seals {
		net.chaosSeals(d)
	}
	if net.Options.Bodies > 0 && turn%100 == 0 {
		net.checkBodies(1, &net.judge.config, false)
		net.Backfill(d.node(net).ID)
	}
}

func (net *Net) chaosParcel(d *dice) {
	i := 0
	if d.roll(d.late) {
		i = d.rng.IntN(len(net.Queue))
	}
	switch p := net.Queue[i]; {
	case d.roll(d.lost):
		net.Drop(i)
	case d.roll(d.twice) && p.Message != nil:
		copied := *p.Message
		net.Queue = append(net.Queue, Parcel{From: p.From, To: p.To, Message: &copied})
		net.Deliver(i)
	case d.roll(d.lazy) && p.Message != nil && (net.Cut == nil || !net.Cut(p.From, p.To)) && net.Node(p.To) != nil:
		net.take(i)
		net.StepLazily(p.To, p.Message)
	default:
		net.Deliver(i)
	}
}

func (net *Net) chaosClients(d *dice) {
	n := d.node(net)
	if n.Core == nil {
		return
	}
	if d.roll(d.propose) {
		net.propose(n.ID, d.rng.IntN(400))
	}
	if d.roll(d.read) {
		net.Read(n.ID)
	}
	if d.roll(d.compact) {
		net.Compact(n.ID, protocol.Index(d.rng.IntN(5)))
	}
	if d.roll(d.transfer) {
		net.Transfer(n.ID, protocol.MemberID(d.rng.IntN(d.members+1)))
	}
}

func (net *Net) chaosMembers(d *dice) {
	n := d.node(net)
	if d.roll(d.crash) {
		if n.Core != nil {
			net.Crash(n.ID, d.rng.IntN(4))
		} else {
			net.Restart(n.ID)
		}
	}
	if d.roll(d.power) {
		for _, n := range net.Nodes {
			if n.Core != nil {
				net.Crash(n.ID, d.rng.IntN(4))
			}
			net.Restart(n.ID)
		}
	}
	if d.roll(d.cut) {
		net.Cut = d.partition()
	}
	if l := net.Leader(); l != nil && d.roll(d.change) && !net.Fixed {
		if net.Merged {
			net.chaosFollow(d, l)
		} else {
			net.chaosChange(d, l)
		}
	}
}

// partition splits the members in two, sometimes in one direction only, or heals.
func (d *dice) partition() func(from, to protocol.MemberID) bool {
	side, how := d.rng.Uint64(), d.rng.IntN(4)
	in := func(id protocol.MemberID) bool { return side>>(id%64)&1 == 1 }
	switch how {
	case 0:
		return nil
	case 1:
		return func(from, to protocol.MemberID) bool { return in(from) && !in(to) }
	}
	return func(from, to protocol.MemberID) bool { return in(from) != in(to) }
}

// chaosChange requests a random change: a member is added, promoted or removed.
func (net *Net) chaosChange(d *dice, l *Node) {
	var changes []protocol.Change
	config := l.Core.Status().Config
	for range 1 + d.rng.IntN(2) {
		m := config.Members[d.rng.IntN(len(config.Members))]
		switch {
		case m.Learner:
			changes = append(changes, change(protocol.AddVoter, m.ID))
		case len(config.Members) > 3:
			changes = append(changes, change(protocol.RemoveMember, m.ID))
		case len(net.Nodes) < 9:
			net.Add(d.next, protocol.Config{})
			changes = append(changes, change(protocol.AddLearner+protocol.ChangeKind(d.rng.IntN(2))-protocol.ChangeKind(1),
				d.next))
			d.next++
		}
	}
	net.Change(l.ID, changes...)
}

// faults: under all faults, committed entries never differ and are never lost, and reads miss nothing; and when
// faults end, the cluster serves again.
func faults(t *testing.T, s suite) {
	for seed := range cmp.Or(s.Seeds, 40) {
		runFaults(t, s, seed, nil)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func runFaults(t testing.TB, s suite, seed uint64, trace func(string)) *Net {
	members := []int{3, 3, 5, 4, 1, 2}[seed%6]
	if s.Members > 0 {
		members = s.Members
	}
	net := s.net(t, members, seed)
	net.Trace = trace
	d := faultsOf(seed, members)
	for turn := range 2500 {
		net.chaos(d, turn)
	}
	net.heal()
	return net
}

// settled waits until a command proposed everywhere is committed, and with it the changes that were in progress: only
// then the members are certain.
func (net *Net) settled() {
	tries := 0
	var all []protocol.Entry
	net.Until("any command", func() bool {
		if tries++; tries%50 == 1 {
			for _, n := range net.Nodes {
				all = append(all, net.propose(n.ID, 10))
			}
			net.Settle()
		}
		for _, e := range all {
			if net.Took(e) != 0 {
				return true
			}
		}
		return false
	})
	net.level()
}

// heal ends all faults and requires progress everywhere.
func (net *Net) heal() {
	net.Cut, net.Lag = nil, false
	for _, n := range net.Nodes {
		if n.Core == nil {
			net.Restart(n.ID)
		}
		net.CarryOut(n.ID)
	}
	net.Settle()
	net.checkBodies(1, &net.judge.config, false)
	if net.Merged {
		net.catchUp()
	}
	net.Until("a leader", func() bool { return net.Leader() != nil })
	net.settled()
	for _, n := range net.Nodes {
		if net.current().Find(n.ID) != nil {
			net.Committed(n.ID, 10)
		}
	}
	net.level()
	net.Until("all that was accepted", net.judge.keptPromises)
	c := net.Read(net.Leader().ID)
	net.Until("a read", func() bool {
		if net.Refused(c) != protocol.ReasonNone {
			c = net.Read(net.Leader().ID)
		}
		_, ok := net.Served(c)
		return ok
	})
	net.checkBodies(1, &net.judge.config, false)
}
