package node

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// Changes of the number of instances from which the log of a running cluster is merged. Members begin and retire
// their parts of instances at positions in the global log, as in production.

var (
	membersReshaped = count.New("members_reshaped", "members reshaped", count.Merged)
	reshapedAhead   = count.New("reshaped_ahead_of_the_state", "ahead of their state", count.Merged)
	messagesEarly   = count.New("early_messages", "messages that waited for their instance", count.Merged)
)

// hosted lists the instances that run: active ones, and retired ones that still serve members that are behind.
func (r *Running) hosted() []*MemberInstance {
	if len(r.Retired) == 0 {
		return r.InForce
	}
	return slices.Concat(r.InForce, r.Retired)
}

// planned schedules the execution of plans.
func (m *Member) planned() {
	if m.Queue.Planned() {
		m.toPlans.post(func() {
			if err := m.carryOut(); err != nil {
				m.fail(err)
			}
		})
	}
}

// carryOut executes the plans that were found in committed entries.
func (m *Member) carryOut() error {
	for _, v := range m.Queue.TakeVoid() {
		if s := m.Among(m.InForce, v.Instance); s != nil {
			s.Step(protocol.Sealed{Index: v.Index})
		}
	}
	for plan := m.Queue.TakePlan(); plan != nil && m.Up; plan = m.Queue.TakePlan() {
		merges := m.Own.mergesWith(m.Own.CoreOf(&plan.Meta.Config.Profile))
		m.Env.Violate(m.ID, m.Env.Court.Grows(len(plan.At.Points), merges))
		changed, err := m.instances.Carry(plan)
		m.Env.Violate(m.ID, m.instances.Check())
		if err != nil {
			return err
		}
		if changed {
			m.carried(plan)
		}
	}
	return nil
}

// carried reports that a plan is carried out.
func (m *Member) carried(plan *apply.PlannedAt) {
	round := plan.At.Next.Round
	m.Env.Count(membersReshaped)
	if at := m.Applier.Cursor(); at.Before(&plan.At) {
		m.Env.Count(reshapedAhead)
	}
	m.Env.Tracef("%s   has instances %v from round %d on", m.ID, plan.At.Instances(), round)
	m.judgeClosed()
	m.Env.Observer.Reshaped(m, plan.At.Position, len(plan.At.Points), len(plan.Begin) > 0)
	m.relink()
}

// judgeClosed judges that a member that has begun takes no part in the instances that a seal ended (W4).
func (m *Member) judgeClosed() {
	m.Env.Court.Settle()
	for _, s := range m.Retired {
		if s.Judges.Closes() && s.Inst.Core().Status().Sealed != protocol.SealClosed {
			m.Env.Violate(m.ID, fmt.Errorf("W4: it has begun, and takes part in instance %d", s.Instance))
		}
	}
}

// judgeEnded judges the same of a member that starts: first records behind a seal close the instances before it.
func (m *Member) judgeEnded(r *Running, found []member.InstanceLog) error {
	m.Env.Court.Settle()
	for _, c := range m.Env.Court.All {
		for i := range found {
			old := &found[i]
			if c.Sealed() && r.instances.Pending(c.ID) && old.Instance < c.ID && !old.Closed &&
				m.Env.Court.Of(old.Instance).Closes() {
				return fmt.Errorf("W4: its log has the beginning of instance %d, and it takes part in instance %d",
					c.ID, old.Instance)
			}
		}
	}
	return nil
}

// closed is called when an instance is closed that a seal ends. The last one lets the others begin.
func (m *Member) closed(id protocol.InstanceID) {
	plan, err := m.instances.Closed(id)
	m.Env.Violate(m.ID, m.instances.Check())
	if err != nil {
		m.fail(err)
	} else if plan != nil {
		m.carried(plan)
	}
}

// Among returns the instance with that id, or nil.
func (r *Running) Among(instances []*MemberInstance, id protocol.InstanceID) *MemberInstance {
	if i := slices.IndexFunc(instances, func(s *MemberInstance) bool { return s.Instance == id }); i >= 0 {
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
	m.Push(apply.ApplyItem{Begun: true})
}

// instancesHost is a member in one incarnation, as lifecycle.Instances needs it.
type instancesHost struct {
	m *Member
	r *Running
}

// Make implements lifecycle.InstancesHost, as the methods below do. It reports the content of the disk to the judges.
func (h instancesHost) Make(log member.InstanceLog) (*MemberInstance, error) {
	m, rec := h.m, log.Recovered
	s := newMemberInstance(m, log.Instance, m.Env.Court.With(log.Instance, &rec.Base.Config))
	s.Noted = rec.State.Commit
	if !m.Strange() && !m.Misled && !m.Apart {
		m.Env.Violate(m.ID, s.Judges.Begins(&rec.Base))
	}
	if m.Up { // otherwise it was reported before
		if err := s.Judges.Ledger.Start(m.Judged(), s.Judges.Found(rec)); err != nil {
			return nil, err
		}
	}
	core, err := m.Own.newCore(m.ID, s.Instance, h.r.session, *rec)
	if err == nil {
		err = s.judgeHeld(h.r.Body.Store, core)
	}
	if err != nil {
		return nil, err
	}
	s.begin(h.r.session, &log, core)
	return s, nil
}

func (h instancesHost) Grow() error { return h.r.dir.Grow() }

func (h instancesHost) Submit(records []wal.Record) { h.m.Writer.Submit(records, h.m.begun) }

func (h instancesHost) Known(since protocol.Position, ids []protocol.InstanceID, inForce, staying []*MemberInstance) {
	sealed := len(h.r.InForce) > 0 && h.r.InForce[0] != inForce[0]
	h.r.InForce, h.r.Retired, h.r.Crew = inForce, staying, &Crew{ids, since, inForce}
	if sealed {
		h.m.Proposals.Follow(*h.m.Env.Set.proposingOf(inForce[0].Judges.Core))
	}
	h.r.MemberInstance = inForce[0]
}

func (h instancesHost) First(s *MemberInstance) protocol.MemberID { return instance.First(s.status) }

func (h instancesHost) Close(s *MemberInstance) { s.Do(s.Hosted.Close) }

// Run schedules the first turn, which has a tick. Otherwise an instance runs when it has input.
func (h instancesHost) Run(s *MemberInstance) {
	s.tick = true
	s.wake()
}

func (h instancesHost) Retire(s *MemberInstance) {
	m := h.m
	m.Env.Violate(m.ID, m.Env.Court.End(s.Judges))
	m.toPlans.post(func() { // a turn may begin before the message arrives
		s.Do(func() {
			s.retire()
			m.weaver.Forget(s.Instance)
		})
	})
}

func (h instancesHost) Deliver(s *MemberInstance, f protocol.Frame) {
	h.m.Env.Count(messagesEarly)
	msg, err := f.Decode(s.Judges.Core.Codec)
	if err != nil {
		h.m.Env.Violate(h.m.ID, err)
		return
	}
	s.message(msg, len(f))
}

func (h instancesHost) Kept(change func(*body.Kept)) { change(h.r.Body.kept) }

// cut cuts the front of the instance's log, up to an index.
func (s *MemberInstance) cut(at protocol.Index) {
	s.judgeCut(at)
	s.Member.Writer.Compact(uint32(s.Instance), uint64(at))
}

// askAgain requests the read indexes of these groups again: see intake.ReadGroup.Again.
func (r *Running) askAgain(groups []*intake.ReadGroup) {
	first := r.InForce[0]
	for _, g := range groups {
		first.Do(func() {
			if r.beginRead(g) {
				first.Hosted.Read(g)
			}
		})
	}
}

// askMissing asks a member for a snapshot, because the instance has no leader.
func (m *Member) askMissing(to protocol.MemberID, instance protocol.InstanceID) {
	if m.Up && !m.Env.Observer.Misses(m.ID, instance) {
		m.ask(to, func(o *Member) { o.Exchange.Missing(m.ID, instance) }, nil)
	}
}
