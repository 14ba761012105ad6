package sim

import (
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// The log of a running cluster is woven from more or fewer instances than before. Members begin and
// retire their parts of instances where the global log says so, as in production.

var (
	membersReshaped = count.New("members_reshaped", "members reshaped", count.Woven)
	reshapedAhead   = count.New("reshaped_ahead_of_the_state", "ahead of their state", count.Woven)
	messagesEarly   = count.New("early_messages", "messages that waited for their instance", count.Woven)
)

// hosted lists the instances that run: those in force, and retired ones that still help members
// that are behind.
func (m *Member) hosted() []*memberInstance {
	if len(m.retired) == 0 {
		return m.inForce
	}
	return slices.Concat(m.inForce, m.retired)
}

// planned has plans carried out soon.
func (m *Member) planned() {
	if m.queue.Planned() {
		m.toPlans.post(func() {
			if err := m.carryOut(); err != nil {
				m.fail(err)
			}
		})
	}
}

// carryOut carries out the plans that were found in what is committed.
func (m *Member) carryOut() error {
	for plan := m.queue.TakePlan(); plan != nil && m.up; plan = m.queue.TakePlan() {
		changed, err := m.instances.Carry(plan)
		m.w.Violate(m.id, m.instances.Check())
		if err != nil {
			return err
		}
		if !changed {
			continue
		}
		round := plan.At.Next.Round
		m.w.Count(membersReshaped)
		if at := m.applier.Cursor(); at.Before(&plan.At) {
			m.w.Count(reshapedAhead)
		}
		m.w.Tracef("%s   has instances %v from round %d on", m.id, plan.At.Instances(), round)
		m.w.observer.reshaped(m, round, len(plan.At.Points), len(plan.Begin) > 0)
		m.relink()
	}
	return nil
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
	m.instances.Begun()
	m.push(apply.ApplyItem{Begun: true})
}

// instancesHost is what lifecycle.Instances asks of a member in one of its lives.
type instancesHost struct {
	m *Member
	r *running
}

// Make implements lifecycle.InstancesHost, as the methods below do. The judges are told what is on the
// disk.
func (h instancesHost) Make(log member.InstanceLog) (*memberInstance, error) {
	m, rec := h.m, log.Recovered
	s := newMemberInstance(m, log.Instance, m.w.court.With(log.Instance, &rec.Base.Config))
	s.noted = rec.State.Commit
	if m.up { // else they were told before
		if err := s.judges.Ledger.Start(m.judged(), m.w.court.Found(rec)); err != nil {
			return nil, err
		}
	}
	if err := s.judgeHeld(h.r.body.store); err != nil {
		return nil, err
	}
	return s, s.begin(h.r.session, rec)
}

func (h instancesHost) Submit(records []wal.Record) { h.m.writer.Submit(records, h.m.begun) }

func (h instancesHost) Known(since protocol.Round, ids []protocol.InstanceID, inForce, staying []*memberInstance) {
	h.r.inForce, h.r.retired, h.r.crew = inForce, staying, &crew{ids, since, inForce}
}

// Run does nothing: an instance runs when something happens to it.
func (h instancesHost) Run(*memberInstance) {}

func (h instancesHost) Retire(s *memberInstance) {
	m := h.m
	m.w.Violate(m.id, m.w.court.End(s.judges))
	m.toPlans.post(func() { // a turn may begin before it hears of it
		s.do(func() {
			s.retire()
			m.weaver.Forget(s.instance)
		})
	})
}

func (h instancesHost) Deliver(s *memberInstance, msg *protocol.Message, bytes int) {
	h.m.w.Count(messagesEarly)
	s.message(msg, bytes)
}

func (h instancesHost) Kept(change func(*body.Kept)) { change(h.r.body.kept) }

// cut cuts the front of the instance's log, up to an index.
func (s *memberInstance) cut(at protocol.Index) {
	s.judgeCut(at)
	s.m.writer.Compact(uint32(s.instance), uint64(at))
}

// askAgain asks for the read points of these groups again, because other instances are in force.
func (m *Member) askAgain(groups []*intake.ReadGroup) {
	first := m.inForce[0]
	for _, g := range groups {
		first.do(func() {
			if m.beginRead(g) {
				first.hosted.Read(g)
			}
		})
	}
}

// askMissing asks a member for a snapshot, because the instance has no leader.
func (s *memberInstance) askMissing(to protocol.MemberID) {
	if s.m.up && !s.m.w.observer.misses(s.m.id, s.instance) {
		s.m.ask(to, func(o *Member) { o.exchange.Missing(s.m.id, s.instance) }, nil)
	}
}
