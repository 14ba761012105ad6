package scale

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/order"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/raft"
)

// node is a member of the cluster with its threads.
type node struct {
	w        *world
	id       protocol.MemberID
	cpu      *machine
	loops    []*loop // at i: that of instance i+1
	disk     *disk
	apply    *apply
	links    [][]*link // at i, j: to member i+1, of instance j+1; nil to itself
	egress   []*card
	ingress  []*card
	weaver   member.Weaver
	load     *load // nil: the member takes no commands
	proposer *proposer
	rooms    []*loop // loops that can take a batch, in route
	// under are this member's batches that were proposed and not applied, by the instance and
	// number under which they were proposed.
	under map[underKey]*bundle
}

type underKey struct {
	instance protocol.InstanceID
	seq      uint64
}

// The times of Raft, as in braid.Options.
const (
	heartbeat       = 100 * time.Millisecond
	electionTimeout = time.Second
	tickEvery       = heartbeat / 10
)

func newMember(w *world, id protocol.MemberID, cpu *machine, config protocol.Config) (*node, error) {
	m := &node{w: w, id: id, cpu: cpu, under: map[underKey]*bundle{}}
	m.proposer = &proposer{m: m}
	m.disk, m.apply = newDisk(m), newApply(m)
	for range w.cfg.Cards {
		m.egress, m.ingress = append(m.egress, &card{w: w}), append(m.ingress, &card{w: w})
	}
	for i := range w.cfg.Instances {
		l, err := newLoop(m, protocol.InstanceID(i+1), config)
		if err != nil {
			return nil, err
		}
		m.loops = append(m.loops, l)
	}
	return m, nil
}

func newLoop(m *node, instance protocol.InstanceID, config protocol.Config) (*loop, error) {
	rec := protocol.Recovered{Base: protocol.Base{Config: config}}
	core, err := raft.New(raft.Config{Self: m.id, Instance: instance, Heartbeat: heartbeat, ElectionTimeout: electionTimeout}, rec)
	if err != nil {
		return nil, fmt.Errorf("scale: %w", err)
	}
	ic := member.InstanceConfig{
		Self: m.id, Instance: instance, Session: protocol.Session{Member: m.id, Incarnation: 1},
		RetryAfter: electionTimeout, GiveUp: time.Hour, Depth: m.w.cfg.Depth,
	}
	if !m.w.cfg.Single {
		ic.Woven = &rec
	}
	l := &loop{m: m, instance: instance, inst: member.NewInstance(ic, core), clock: member.Clock{Read: func() time.Duration { return m.w.now }}}
	l.thread = m.cpu.thread(fmt.Sprintf("instance %d", instance), l.work, l.finish)
	return l, nil
}

// route wakes the loop that should take what waits to be proposed. It prefers one among those that
// can take it.
func (m *node) route() {
	bytes, full := m.proposer.waiting()
	if bytes == 0 {
		return
	}
	m.rooms = m.rooms[:0]
	for _, l := range m.loops {
		if !l.leads {
			continue
		}
		if ok, wait := l.inst.Room(m.w.now, bytes, full); ok {
			m.rooms = append(m.rooms, l)
		} else if wait > 0 {
			l.wakeIn(wait)
		}
	}
	if len(m.rooms) > 0 {
		to := member.Prefer(len(m.rooms), func(i int) member.Load {
			return member.Load{Leads: true, Led: true, Pending: m.rooms[i].inst.Pending()}
		})
		m.rooms[to].thread.wake()
	}
}

// apply is the thread that merges the entries that instances commit, and applies them.
type apply struct {
	m       *node
	thread  *thread
	order   order.Order
	queue   []member.CommittedEntries
	placed  []order.Placed
	settled []group // commands of this member that are applied, until the turn ends
}

func newApply(m *node) *apply {
	a := &apply{m: m, order: order.New(order.Begin(m.w.cfg.Instances, !m.w.cfg.Single))}
	a.thread = m.cpu.thread("apply", a.work, a.finish)
	return a
}

func (a *apply) work() (cost spend) {
	c := &a.m.w.costs
	for _, it := range a.queue {
		cost.on(c.Apply, len(it.Entries), 0)
		a.order.Add(it.Instance, it.Entries)
		a.placed = a.order.Next(a.placed[:0])
		for i := range a.placed {
			p := &a.placed[i]
			cost.on(c.Command, int(p.Entry.Count), 0)
			if p.Entry.ID.Session.Member != a.m.id {
				continue
			}
			key := underKey{p.Instance, p.Entry.ID.Seq}
			if b := a.m.under[key]; b != nil {
				delete(a.m.under, key)
				cost.on(c.Settle, b.commands, 0)
				a.settled = append(a.settled, b.groups...)
			}
		}
	}
	clear(a.placed)
	clear(a.queue)
	a.queue = a.queue[:0]
	return cost
}

func (a *apply) finish() {
	if len(a.settled) > 0 {
		a.m.load.applied(a.settled)
		a.settled = a.settled[:0]
	}
}
