package scale

import (
	"math"

	"github.com/braidlog/braid/member"
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
	apply     *apply
	links     [][]*link // at i, j: to member i+1, of instance j+1; nil to itself
	egress    []*card
	ingress   []*card
	framer    member.Framer
	weaver    member.Weaver
	proposals member.Proposals
	inbox     int   // bytes of messages that wait for all instances
	load      *load // nil: the member takes no commands
}

func newMember(w *world, id protocol.MemberID, cpu *machine, meta *member.Meta) (m *node, err error) {
	m = &node{w: w, id: id, session: protocol.NewSession(id, protocol.LogID{}, 1, true), cpu: cpu}
	if m.disk, err = newDisk(m); err != nil {
		return nil, err
	}
	m.framer.Load = member.LoadFrom(m.disk.log)
	m.apply = newApply(m, *meta)
	m.proposals = member.Proposals{
		MaxBatch: w.cfg.MaxBatchBytes, MaxCount: w.cfg.MaxBatchCommands, MaxBytes: math.MaxInt64, // the load has its own limit
		Free: m.apply.settled,
	}
	for range w.cfg.Cards {
		m.egress, m.ingress = append(m.egress, &card{w: w}), append(m.ingress, &card{w: w})
	}
	m.ids = meta.Cursor.Instances()
	for _, instance := range m.ids {
		l, err := newLoop(m, instance, meta)
		if err != nil {
			return nil, err
		}
		m.loops = append(m.loops, l)
	}
	return m, nil
}

// propose takes a command.
func (m *node) propose(command []byte, done member.Done) {
	fresh, err := m.proposals.Add(m.w.time, command, done)
	m.w.note(err)
	if fresh {
		m.loops[member.Preferred(siblings{m.loops[0]})].thread.wake()
	}
}
