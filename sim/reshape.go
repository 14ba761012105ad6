package sim

import (
	"slices"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/wal"
)

// The log of a running cluster is woven from more or fewer instances than before. Members begin and
// retire their parts of instances where the global log says so, as in production.

// hosted lists the instances that run: those in force, and retired ones that still help members
// that are behind.
func (m *Member) hosted() []*memberInstance {
	if len(m.retired) == 0 {
		return m.inForce
	}
	return slices.Concat(m.inForce, m.retired)
}

// reshaped begins and retires instances as the global log says at the cursor.
func (m *Member) reshaped() (begun bool, err error) {
	changed, begun, err := m.instances.Reshape(m.applier)
	m.w.violate(m.id, m.instances.Check())
	if changed {
		cursor := m.applier.Cursor()
		m.w.events.Reshaped++
		m.w.tracef("%s   has instances %v from round %d on", m.id, cursor.Instances(), cursor.Next.Round)
		m.w.noteShapes(cursor.Next.Round)
		m.relink()
	}
	return begun, err
}

func (m *Member) among(instances []*memberInstance, id protocol.InstanceID) *memberInstance {
	if i := slices.IndexFunc(instances, func(s *memberInstance) bool { return s.instance == id }); i >= 0 {
		return instances[i]
	}
	return nil
}

// begun is called when the log has the first records of new instances.
func (m *Member) begun(err error) {
	if err != nil {
		m.fail(err)
		return
	}
	m.push(member.ApplyItem{Begun: true})
}

// instancesHost is what member.Instances asks of a member in one of its lives.
type instancesHost struct {
	m *Member
	r *running
}

// Make implements member.InstancesHost, as the methods below do. The judges are told what is on the
// disk.
func (h instancesHost) Make(log member.InstanceLog) (*memberInstance, error) {
	m, rec := h.m, log.Recovered
	s := newMemberInstance(m, log.Instance, m.w.courtWith(log.Instance, &rec.Base.Config))
	s.noted = rec.State.Commit
	if m.up { // else they were told before
		if err := s.judges.ledger.Start(m.judged(), m.w.set.foundRecords(rec)); err != nil {
			return nil, err
		}
	}
	if err := s.judgeHeld(h.r.body.store); err != nil {
		return nil, err
	}
	return s, s.begin(h.r.session, rec)
}

func (h instancesHost) Submit(records []wal.Record) { h.m.writer.Submit(records, h.m.begun) }

func (h instancesHost) Known(ids []protocol.InstanceID, inForce, staying []*memberInstance) {
	h.r.inForce, h.r.retired, h.r.crew = inForce, staying, &crew{ids, inForce}
}

// Run does nothing: an instance runs when something happens to it.
func (h instancesHost) Run(*memberInstance) {}

func (h instancesHost) Retire(s *memberInstance) {
	m := h.m
	s.judges.end(m.w.weave.End(uint64(s.instance)))
	m.w.violate(m.id, m.w.configureEnded(m.w.instanceJudges))
	m.toPlans.post(func() { // a turn may begin before it hears of it
		s.do(func() {
			s.hosted.Retire()
			m.weaver.Forget(s.instance)
		})
	})
}

func (h instancesHost) Deliver(s *memberInstance, msg *protocol.Message, bytes int) {
	h.m.w.events.Early++
	s.message(msg, bytes)
}

func (h instancesHost) Kept(change func(*member.Kept)) { change(h.r.body.kept) }

// cut cuts the front of the instance's log, up to an index.
func (s *memberInstance) cut(at protocol.Index) {
	s.judgeCut(at)
	s.m.writer.Compact(uint32(s.instance), uint64(at))
}

// askAgain asks for the read points of these groups again, because other instances are in force.
func (m *Member) askAgain(groups []*member.ReadGroup) {
	first := m.inForce[0]
	for _, g := range groups {
		first.do(func() { first.hosted.BeginRead(g) })
	}
}

// AskMissing implements member.Host. The instance calls it when it has no leader.
func (s *memberInstance) AskMissing(to protocol.MemberID) {
	if s.m.up {
		s.m.ask(to, func(o *Member) { o.exchange.Missing(s.m.id, s.instance) }, nil)
	}
}

// reshape is the operator who asks for another number of instances.
func (w *World) reshape() {
	n, m := 1+w.pick(5), w.asked()
	if l := w.leader(); l != nil && len(l.inForce) != len(m.inForce) && w.chance(0.5) {
		n = len(m.inForce) // a member that is behind takes it for made
	}
	w.tracef("FAULT %s is asked for %d instances", m.id, n)
	w.ask(m, member.Operation{Kind: member.Reshape, Instances: n}, w.between(w.set.Election, 20*w.set.Election), func(err error) {
		if err == nil && !w.calm && w.chance(w.set.Weave.Move) {
			w.move()
		}
	})
}

// move is the operator who moves a member to another machine, as soon as the number of instances
// has changed. The new member never takes part in instances that were retired before it joined.
func (w *World) move() {
	if w.set.Faults[faultChange] == 0 || w.set.Resize || len(w.members) >= w.set.Nodes+maxAdded {
		return
	}
	added := w.addMember()
	w.askChange(w.asked(), []protocol.Change{{Kind: protocol.AddLearner, Member: added}})
	w.promoteLater(added.ID)
}
