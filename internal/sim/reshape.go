package sim

import (
	"slices"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/internal/member/cluster"
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
		if len(plan.Begin) > 0 && round > m.w.grown { // the new ones elect their first leaders, all at the same time
			m.w.grown = round
			m.w.detours += m.w.set.electionTime()
		}
		m.w.askOutdated(len(plan.At.Points))
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

func (h instancesHost) Known(since protocol.Round, ids []protocol.InstanceID, inForce, staying []*memberInstance) {
	h.r.inForce, h.r.retired, h.r.crew = inForce, staying, &crew{ids, since, inForce}
}

// Run does nothing: an instance runs when something happens to it.
func (h instancesHost) Run(*memberInstance) {}

func (h instancesHost) Retire(s *memberInstance) {
	m := h.m
	s.judges.end(m.w.weave.End(uint64(s.instance)))
	m.w.Violate(m.id, m.w.configureEnded(m.w.instanceJudges))
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

// AskMissing implements instance.Host. The instance calls it when it has no leader.
func (s *memberInstance) AskMissing(to protocol.MemberID) {
	if s.m.up && !s.m.w.misses(s.m.id, s.instance) {
		s.m.ask(to, func(o *Member) { o.exchange.Missing(s.m.id, s.instance) }, nil)
	}
}

// reshape is the operator who asks for another number of instances. Sometimes the state machine of a member
// stands still then, so that its new instances work long before its state comes to them.
func (w *World) reshape() {
	n, m := 1+w.Pick(5), w.asked()
	if has, most := m.instancesApplied(), w.leader(); most != nil && most.instancesApplied() != has && w.Chance(0.8) {
		n = has // a member that is behind takes it for made
	}
	w.Tracef("FAULT %s is asked for %d instances", m.id, n)
	if up := w.upAnd(func(*Member) bool { return true }); !w.calm && len(up) > 0 && w.Chance(0.4) {
		w.lag(up[w.Among(len(up))])
	}
	if n < len(m.inForce) && w.Chance(0.5) {
		w.After(w.Between(0, w.set.Heartbeat), w.missRetirement)
	}
	w.ask(m, cluster.Operation{Kind: cluster.Reshape, Instances: n}, w.Between(w.set.Election, 20*w.set.Election), func(err error) {
		if err == nil && !w.calm && w.Chance(w.set.Weave.Move) {
			w.move()
		}
	})
}

// askOutdated is an operator who asks a member whose state is behind, mostly the leader, for the number of
// instances that its state knows, just as others come to another one. The member takes that for made, if
// it does not find out. In a scenario operators ask only for what the scenario says.
func (w *World) askOutdated(now int) {
	behind := w.upAnd(func(m *Member) bool { return m.instancesApplied() != now })
	if w.calm || len(behind) == 0 || w.set.Faults[faultReshape] == 0 || !w.Chance(0.5) {
		return
	}
	m := behind[w.Among(len(behind))]
	if l := w.leader(); slices.Contains(behind, l) && w.Chance(0.7) {
		m = l
	}
	n := m.instancesApplied()
	w.lag(m)
	w.After(w.Between(0, w.set.Election), func() {
		if m.up && !w.calm {
			w.Tracef("FAULT %s is asked for %d instances, where others come to %d", m.id, n, now)
			w.ask(m, cluster.Operation{Kind: cluster.Reshape, Instances: n}, w.Between(w.set.Election, 20*w.set.Election), func(error) {})
		}
	})
}

// instancesApplied is how many instances there are as far as the member's state knows.
func (m *Member) instancesApplied() int {
	at := m.applier.Cursor()
	return len(at.Points)
}

// missRetirement cuts off a member while instances are retired, until it needs a snapshot. What it
// proposed through them may have taken effect, and it proposes that again.
func (w *World) missRetirement() {
	list := w.upAnd(func(m *Member) bool { return !m.leads() })
	if len(list) == 0 || w.calm {
		return
	}
	m := list[w.Among(len(list))]
	for range 1 + w.Pick(4) {
		w.comesTo(m, check.Put, w.drawKey(), w.Between(0, w.set.HopMax+2*w.set.DelayMax))
	}
	w.After(2*w.set.DelayMax, func() {
		if m.up && !w.calm && !w.anyAway() {
			w.cutAway(m)
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
