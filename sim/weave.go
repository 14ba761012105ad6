package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/check"
	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/order"
	"github.com/braidlog/braid/protocol"
)

// What members do so that their instances make one log, and what is judged of it.

// weaveSettings is what a run of woven instances has of its own.
type weaveSettings struct {
	// Scatter is which part of the batches goes to any instance, not to the one that suits best.
	Scatter float64
	// Lazy is how often a leader does not see at once that a sibling waits for it.
	Lazy float64
}

// woven reports whether the global log is woven from instances, be it one.
func (s *Settings) woven() bool { return s.Instances > 0 }

// begin is where the cluster's global log begins.
func (s *Settings) begin() order.Cursor { return order.Begin(max(1, s.Instances), s.woven()) }

// weaveStream is for what a run of woven instances draws besides.
const weaveStream = stream + 2

func (s *Settings) drawWeave(d dice) {
	if !s.woven() {
		return
	}
	w := &s.Weave
	s.Raft.Leaders = [...]protocol.Leaders{protocol.LeadersTogether, protocol.LeadersSpread, protocol.LeadersAny}[d.below(3)]
	if d.yes(0.6) {
		w.Scatter = d.share()
	}
	if d.yes(0.5) {
		w.Lazy = d.share()
	}
	if d.yes(0.3) {
		s.Faults[faultReshape] = s.Election * time.Duration(2+d.below(15))
	}
}

func (s *Settings) describeWeave() string {
	if !s.woven() {
		return ""
	}
	return fmt.Sprintf("%d instances, leaders %q, %.0f%% of batches anywhere, %.0f%% of waits seen late\n",
		s.Instances, s.Raft.Leaders, 100*s.Weave.Scatter, 100*s.Weave.Lazy)
}

// named is the instance's name, where there may be several.
func (w *World) named(instance protocol.InstanceID) string {
	if !w.set.woven() {
		return ""
	}
	return fmt.Sprintf(" of instance %d", instance)
}

// room finds an instance that takes the next batch: as production does the one that suits
// best, or any. wait says when to ask again.
func (m *Member) room(bytes int, full bool) (s *strand, wait time.Duration) {
	list := m.strands
	if m.w.route != 0 {
		list = []*strand{m.of(m.w.route)}
	} else if len(list) > 1 && m.w.chance(m.w.set.Weave.Scatter) {
		i := m.w.pick(len(list))
		list = list[i : i+1]
	}
	for tried := make([]bool, len(list)); ; {
		i := member.Prefer(len(list), func(i int) member.Load { return list[i].load(tried[i]) })
		if tried[i] {
			return nil, wait
		}
		ok, later := list[i].inst.Room(m.turn.Now(), bytes, full)
		if ok {
			return list[i], 0
		}
		if later > 0 && (wait == 0 || later < wait) {
			wait = later
		}
		tried[i] = true
	}
}

// load is what there is to do in the instance; full: it takes nothing now.
func (s *strand) load(full bool) member.Load {
	if full {
		return member.Load{Pending: 1 << 30}
	}
	leader, _ := s.inst.Leader()
	return member.Load{Leads: leader == s.m.id, Led: leader != 0, Pending: s.inst.Pending()}
}

// skip lets the instance skip, if it is led here and others wait for it.
func (s *strand) skip() { s.inst.Weave(s.m.turn.Now(), s.m.weaver.Want(s.instance), &s.out) }

// spin ends a turn of the instance: others may have to skip for it. Sometimes they notice late.
func (s *strand) spin() {
	m := s.m
	if !m.up || !slices.Contains(m.strands, s) || !m.w.set.woven() {
		return
	}
	s.skip()
	for _, id := range m.weaver.Set(s.inst.Thread(m.turn.Now()), nil) {
		if m.w.chance(m.w.set.Weave.Lazy) {
			m.later(m.w.between(0, m.w.set.Heartbeat), func() {
				if o := m.of(id); !o.vanished {
					o.skip()
					m.flush()
				}
			})
		} else {
			m.of(id).skip()
		}
	}
}

// tickWeave does what is due now and then.
func (m *Member) tickWeave() {
	if !m.w.set.woven() {
		return
	}
	now := m.turn.Now()
	for turn, s := range m.strands {
		s.skip()
		s.inst.Step(now, protocol.Place{At: turn}, &s.out)
		s.inst.Remind(now, m.w.set.Heartbeat, m.weaver.Want(s.instance), &s.out)
		st := s.inst.Core().Status()
		to := m.w.set.Raft.Leaders.Preferred(st.Config.Voters(), turn, m.witness.status.Leader)
		if to = s.mover.Next(now, 2*m.w.set.Election, &st, to); to != 0 {
			m.w.events.Moved++
			s.inst.Step(now, protocol.Transfer{To: to}, &s.out)
		}
		if s != m.strand {
			if st.Term == 0 && m.w.set.Raft.Leaders.Preferred(st.Config.Voters(), turn, m.witness.status.Leader) == m.id {
				s.inst.Step(now, protocol.Stand{}, &s.out)
			}
			s.missed(now)
			s.followMembership(&st)
		}
	}
}

// followMembership changes an instance's membership to the first one's.
func (s *strand) followMembership(st *protocol.Status) {
	cluster := s.m.applier.Config()
	now := s.m.turn.Now()
	if target := s.following.Next(now, 2*s.m.w.set.Election, &cluster, st); target != nil {
		s.inst.Step(now, protocol.ProposeChange{Target: target}, &s.out)
	}
}

// settled reports whether all instances have followed the last change of the first one, so
// that the next one may begin.
func (m *Member) settled() bool {
	return len(m.strands) == 1 || member.Settled(&m.witness.status.Config, m.applier.Configs())
}

// suspect tells the other instances whose silence an instance has noticed.
func (m *Member) suspect() {
	for _, s := range m.strands {
		gone := s.suspects
		if s.suspects = 0; gone == 0 {
			continue
		}
		for _, o := range m.strands {
			if o != s {
				o.inst.Step(m.turn.Now(), protocol.Suspect{Member: gone}, &o.out)
			}
		}
	}
}

// config is the membership of the instance as of what is applied.
func (s *strand) config() protocol.Config {
	if len(s.m.strands) == 1 {
		return s.m.applier.Config()
	}
	if i := slices.Index(s.m.strands, s); i >= 0 {
		return s.m.applier.Configs()[i]
	}
	return s.m.applier.Config()
}

// slotOf is what an entry does in the global log, as the judge has it.
func slotOf(e *protocol.Entry) check.Slots {
	switch e.Kind {
	case protocol.EntryBatch:
		return check.Slots{Fills: true, Covers: e.Width()}
	case protocol.EntryConfig:
		return check.Slots{Covers: 1}
	case protocol.EntryReshape:
		return check.Slots{Fills: true, Instances: e.Instances()}
	case protocol.EntrySkip:
		return check.Slots{SkipsTo: uint64(e.Round())}
	}
	return check.Slots{}
}

// judgeSkip judges that leaders do not skip what their logs fill (N4).
func (c *witness) judgeSkip(r *protocol.Record) error {
	if r.Kind != protocol.RecordEntry || r.Entry.Kind != protocol.EntrySkip || c.status.Role != protocol.Leader {
		return nil
	}
	c.m.w.events.Skips++
	if tail := c.s.inst.Tail(); tail.End()+1 == r.Entry.Index && r.Entry.Round() <= tail.Round() {
		return fmt.Errorf("N4: instance %d skips to round %d; its log fills %d", c.s.instance, r.Entry.Round(), tail.Round())
	}
	return nil
}

// judgeWeave judges where the member is in the global log (N1, N2).
func (m *Member) judgeWeave() {
	if !m.w.set.woven() {
		return
	}
	at := m.applier.Cursor()
	cut := check.Cut{Round: uint64(at.Next.Round), Instance: uint64(at.Next.Instance), Position: uint64(at.Position)}
	var added, after []uint64
	for _, p := range at.Points {
		cut.Instances, cut.Points = append(cut.Instances, uint64(p.Instance)), append(cut.Points, uint64(p.Index))
		added = append(added, uint64(m.applier.Added(p.Instance)))
		after = append(after, uint64(m.base.Point(p.Instance).Round))
	}
	m.w.violate(m.id, m.w.weave.Member(uint64(m.id), added, after, cut))
	if m.w.executed.Compare(at.Next) < 0 {
		m.w.executed = at.Next
	}
}

// judgeRead judges that a read sees all that was executed anywhere before it was asked for (N3).
func (m *Member) judgeRead(r *pendingRead) {
	cursor, _ := m.progress.At()
	if at := cursor.Next; at.Compare(r.floor) < 0 {
		m.w.violate(m.id, fmt.Errorf("N3: a read is answered at round %d of instance %d; when it was asked for %d of %d was executed",
			at.Round, at.Instance, r.floor.Round, r.floor.Instance))
	}
}

// judgeCut judges that an instance's log is cut under a durable snapshot (N5).
func (s *strand) judgeCut(at protocol.Index) {
	if p := s.m.snapped.Point(s.instance); at > p.Index && !s.m.snapped.Retired(s.instance) {
		s.m.w.violate(s.m.id, fmt.Errorf("N5: the log of instance %d is cut at %d; the newest snapshot is at %d", s.instance, at, p.Index))
	}
}

// mergeTime is how long a decided slot takes at most to be executed by all who are up, while
// every instance has a leader: the skips of the others, and the news that all is committed. A
// leader that hands over to a member that has just gone takes nothing for an election timeout.
func (s *Settings) mergeTime() time.Duration {
	return s.Election + 3*s.Heartbeat + 2*s.Tick + 8*(s.DelayMax+s.SyncMax)
}

// judgeMerging judges that an entry that was just decided is soon executed everywhere (N7).
func (w *World) judgeMerging(instance protocol.InstanceID, index protocol.Index) {
	if w.merging == 0 {
		return
	}
	limit := w.merging
	w.after(limit, func() {
		for _, m := range w.serving(w.members) {
			if m.up && !m.sick() && w.merging > 0 && m.among(m.strands, instance) != nil && pointOf(m.applier, instance) < index {
				w.violate(m.id, fmt.Errorf("N7: entry %d of instance %d was decided %s ago and is not executed: %s", index, instance, limit, m.gap()))
			}
		}
	})
}

func pointOf(a *member.Applier, instance protocol.InstanceID) protocol.Index {
	at := a.Cursor()
	return at.Point(instance).Index
}

// demandMerging lets members write while all is well, or has just begun to be not, and
// demands that what is decided is soon executed. While an instance still follows a change of
// the membership its quorum may wait for one who has to catch up.
func (w *World) demandMerging(alive []*Member) {
	if !w.set.woven() || w.broken != nil || slices.ContainsFunc(w.serving(alive), func(m *Member) bool { return !m.settled() }) {
		return
	}
	w.merging = w.set.mergeTime()
	if victim := w.someLeader(); victim != nil && w.chance(0.5) && w.decisive(slices.DeleteFunc(slices.Clone(alive), func(m *Member) bool { return m == victim })) {
		w.tracef("FAULT %s loses power while the others write", victim.id)
		w.merging += 4 * w.set.Election
		victim.crash()
	}
	for i, m := range w.serving(alive) {
		c := &client{w: w, number: w.set.Clients + int(m.id), home: m.id}
		w.after(time.Duration(i)*w.set.Heartbeat, func() {
			if m.up {
				op := &operation{Operation: check.Operation{Client: c.number, Kind: check.Append, Key: "k0", Value: fmt.Sprintf("%d,", len(w.ops))}}
				c.perform(m, op, w.set.GiveUp, func() {})
			}
		})
	}
	w.run(w.now + 2*w.merging + time.Duration(len(alive))*w.set.Heartbeat)
	w.merging = 0
	for _, m := range alive {
		w.startMember(m)
	}
	w.demandProgress(alive, false)
}

// gap says which instance holds the member back in the global log; "" if none does.
func (m *Member) gap() string {
	if !m.w.set.woven() {
		return ""
	}
	at := m.applier.Cursor()
	for _, s := range m.strands {
		if w := m.w.weave.Wanted(uint64(s.instance)); uint64(at.Point(s.instance).Index) < w {
			return fmt.Sprintf("instance %d is consumed to %d, wanted is %d; next is round %d of instance %d",
				s.instance, at.Point(s.instance).Index, w, at.Next.Round, at.Next.Instance)
		}
	}
	return ""
}
