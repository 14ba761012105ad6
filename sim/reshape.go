package sim

import (
	"math"
	"slices"
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
)

// A running cluster's log is woven from more or fewer instances: members begin and retire
// their parts of them where the global log says so, as the production replica does.

// hosted lists the instances that run: those in force, and those retired that still help
// members who are behind.
func (m *Member) hosted() []*strand {
	if len(m.retired) == 0 {
		return m.strands
	}
	return append(slices.Clone(m.strands), slices.DeleteFunc(slices.Clone(m.retired), func(s *strand) bool { return s.vanished })...)
}

// kept lists all instances of which bodies may be held.
func (m *Member) kept() []*strand {
	if len(m.retired) == 0 {
		return m.strands
	}
	return append(slices.Clone(m.strands), m.retired...)
}

// shape lists the instances that the member has in force.
func (m *Member) shape() (ids []protocol.InstanceID) {
	for _, s := range m.strands {
		ids = append(ids, s.instance)
	}
	return ids
}

// reshaped begins and retires instances as the global log says at the cursor.
func (m *Member) reshaped() error {
	cursor := m.applier.Cursor()
	shape := cursor.Instances()
	if !m.w.set.woven() || slices.Equal(shape, m.shape()) {
		return nil
	}
	m.w.events.Reshaped++
	m.w.tracef("%s   has instances %v from round %d on", m.id, shape, cursor.Next.Round)
	meta := m.applier.Meta()
	old := m.strands
	m.strands = nil
	for _, id := range shape {
		s := m.among(old, id)
		if s == nil {
			var err error
			if s, err = m.bear(meta.Base(id), id); err != nil {
				return err
			}
		}
		m.strands = append(m.strands, s)
	}
	for _, s := range old {
		if !slices.Contains(m.strands, s) {
			m.retire(s)
		}
	}
	m.askAgain()
	return nil
}

func (m *Member) among(strands []*strand, id protocol.InstanceID) *strand {
	if i := slices.IndexFunc(strands, func(s *strand) bool { return s.instance == id }); i >= 0 {
		return strands[i]
	}
	return nil
}

// bear makes the member's part of an instance that begins at a base. What an earlier life
// has left of it on disk is taken up again.
func (m *Member) bear(base protocol.Base, id protocol.InstanceID) (*strand, error) {
	u := m.unborn[id]
	if delete(m.unborn, id); u == nil {
		var err error
		if u, err = member.RecoverUnborn(m.log, id); err != nil {
			return nil, err
		}
	}
	rec, records, err := u.Begin(base)
	if err != nil {
		return nil, err
	}
	if len(records) > 0 {
		m.writer.Submit(records, m.failOn)
	}
	s := newStrand(m, id, m.w.courtWith(id, &base.Config))
	s.noted = rec.State.Commit
	if err := s.court.ledger.Start(m.judged(), foundRecords(&rec)); err != nil {
		return nil, err
	}
	if err := s.holdBodies(m.machine, m.body.store, rec.Base.Index); err != nil {
		return nil, err
	}
	return s, s.begin(m.session, &rec)
}

// retire ends what the member does through an instance. What it proposed there and what took
// no effect another instance takes.
func (m *Member) retire(s *strand) {
	m.retired = append(m.retired, s)
	m.weaver.Forget(s.instance)
	s.court.end(m.w.weave.End(uint64(s.instance)))
	void, unsure := s.inst.Retire(m.applier.Ended(s.instance))
	m.again = append(m.again, void...)
	for _, b := range unsure {
		b.Fail(member.ErrMaybeCommitted)
	}
	m.later(10*m.w.set.Election, s.vanish)
}

// vanish ends an instance that was retired a while ago: its log and what only its log needs
// are given up. Before a durable snapshot says that it is retired, the member would need
// both after a restart, or break its word as a voter of the instance.
func (s *strand) vanish() {
	if !s.m.snapped.Retired(s.instance) {
		s.m.later(s.m.w.set.Election, s.vanish)
		return
	}
	s.vanished = true
	s.body.retention.Compact(math.MaxUint64)
	s.sweep()
	s.cut(member.AllIndexes)
}

// cut gives up the instance's log up to an index.
func (s *strand) cut(at protocol.Index) {
	s.judgeCut(at)
	s.m.writer.Compact(uint32(s.instance), uint64(at))
}

// askAgain asks anew for the read points of reads that were asked for with other instances.
func (m *Member) askAgain() {
	shape := m.instances()
	var void []pendingRead
	keep := func(list []pendingRead) []pendingRead {
		return slices.DeleteFunc(list, func(r pendingRead) bool {
			if r.vector.Void(shape) {
				void = append(void, r)
				return true
			}
			return false
		})
	}
	m.asked, m.waiting = keep(m.asked), keep(m.waiting)
	for _, r := range void {
		m.ask(r)
	}
}

// missed asks for a snapshot when this member lacks the log of an instance that may be retired.
func (s *strand) missed(now time.Duration) {
	m, w := s.m, s.m.w
	to := s.search.Next(now, w.set.Election, s.witness.status.Leader != 0, &m.witness.status)
	if to == 0 || w.link(m.id, to).cut {
		return
	}
	w.after(w.between(w.set.DelayMin, w.set.DelayMax), func() {
		o := w.member(to)
		if !o.up || !m.up || !w.linked(m, m.life, o) || !o.up || !m.up {
			return
		}
		if at := o.applier.Cursor(); at.Retired(s.instance) { // perhaps without the member that asks ever among its own
			o.strand.stream(m.id, 0)
		}
	})
}

// overRetired takes a snapshot for an instance that it says is retired: no core will, if this
// member has everything else.
func (m *Member) overRetired(meta *member.Meta) {
	for _, s := range m.strands {
		if meta.Cursor.Retired(s.instance) {
			s.skipTo(&protocol.Base{})
			m.apply()
			return
		}
	}
}

// reshape is what the operator does: he asks for another number of instances.
func (w *World) reshape() {
	l := w.leader()
	if l == nil {
		return
	}
	n := 1 + w.pick(5)
	if at := l.applier.Cursor(); at.Reshape != 0 || !l.settled() || n == len(l.strands) || n > maxInstances {
		return
	}
	w.tracef("FAULT %s is asked for %d instances", l.id, n)
	l.whenAwake(func() { l.step(protocol.Propose{Entries: []protocol.Entry{protocol.NewReshape(n)}}) })
}
