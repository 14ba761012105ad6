package scale

import (
	"math"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/lifecycle"
	"github.com/braidlog/braid/protocol"
)

// node is a member of the cluster with its threads.
type node struct {
	w         *world
	id        protocol.MemberID
	session   protocol.Session
	cpu       *machine
	ids       []protocol.InstanceID
	loops     []*loop // at i: that of instance i+1
	disk      *disk
	apply     *applyThread
	links     []*link // at linkTo of a member and an instance; nil: nothing sent yet
	egress    []*card
	ingress   []*card
	framer    instance.Framer
	weaver    instance.WantedRounds
	proposals intake.Proposals
	inbox     int    // bytes of messages that wait for all instances
	load      *load  // nil: the member takes no commands
	keys      uint64 // the number of its commands with a key
}

func newMember(w *world, id protocol.MemberID, cpu *machine, meta *member.Meta) (m *node, err error) {
	m = &node{w: w, id: id, session: protocol.NewSession(id, protocol.LogID{}, 1, !meta.Cursor.Keyed), cpu: cpu}
	if m.disk, err = newDisk(m); err != nil {
		return nil, err
	}
	m.framer.Load = lifecycle.LoadFrom(m.disk.log)
	if m.apply, err = newApply(m, *meta); err != nil {
		return nil, err
	}
	m.proposals = intake.Proposals{
		// The load has its own limit.
		MaxBatch: w.cfg.MaxBatchBytes, MaxCount: w.cfg.MaxBatchCommands, MaxBytes: math.MaxInt64,
		Proposing: w.protocol.Core.Proposing.With(w.cfg.Own), Free: m.apply.resolve,
	}
	for range w.cfg.Cards {
		m.egress, m.ingress = append(m.egress, &card{w: w}), append(m.ingress, &card{w: w})
	}
	m.ids = meta.Cursor.Instances()
	if meta.Cursor.Keyed {
		m.proposals.SetGroups(m.ids)
	}
	m.links = make([]*link, w.cfg.Nodes*len(m.ids))
	for _, instance := range m.ids {
		l, err := newLoop(m, instance, meta)
		if err != nil {
			return nil, err
		}
		m.loops = append(m.loops, l)
	}
	return m, nil
}

// linkTo returns the position of an instance's link to a member in links.
func (m *node) linkTo(to protocol.MemberID, instance protocol.InstanceID) int {
	return (int(to)-1)*len(m.ids) + int(instance) - 1
}

// link returns the link of an instance to a member.
func (m *node) link(to protocol.MemberID, instance protocol.InstanceID) *link {
	at := m.linkTo(to, instance)
	if m.links[at] == nil {
		m.links[at] = newLink(m, m.w.members[to-1], instance)
	}
	return m.links[at]
}

// propose takes a command.
func (m *node) propose(command []byte, done intake.Done) {
	fresh, err := false, error(nil)
	o, home := protocol.ProposeOptions{}, protocol.InstanceID(0)
	if m.w.keyed() {
		o.Keys = []uint64{m.w.nextKey(m)}
		home, err = m.proposals.Home(&o)
		m.w.note(err)
		fresh, err = m.proposals.AddWith(m.w.time, command, &o, done)
	} else {
		fresh, err = m.proposals.Add(m.w.time, command, done)
	}
	m.w.note(err)
	if fresh {
		bytes, full, _ := m.proposals.Waiting()
		instance.WakeTakers(siblings{m.loops[0]}, m.w.begin.Keyed, home, instance.Large(bytes, full),
			func(i int) { m.loops[i].thread.wake() })
	}
}
