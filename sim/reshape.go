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
	return append(slices.Clone(m.inForce), slices.DeleteFunc(slices.Clone(m.retired), func(s *memberInstance) bool { return s.ended })...)
}

// shape lists the instances that the member has in force.
func (m *Member) shape() (ids []protocol.InstanceID) {
	for _, s := range m.inForce {
		ids = append(ids, s.instance)
	}
	return ids
}

// reshaped begins and retires instances as the global log says at the cursor.
func (m *Member) reshaped() (begun bool, err error) {
	cursor := m.applier.Cursor()
	shape := cursor.Instances()
	if !m.w.set.woven() || slices.Equal(shape, m.shape()) {
		return false, nil
	}
	m.w.events.Reshaped++
	m.w.tracef("%s   has instances %v from round %d on", m.id, shape, cursor.Next.Round)
	meta := m.applier.Meta()
	old := m.inForce
	var instances []*memberInstance
	var records []wal.Record
	for _, id := range shape {
		s := m.among(old, id)
		if s == nil {
			var beginning []wal.Record
			if s, beginning, err = m.beginInstance(meta.Base(id), id); err != nil {
				return false, err
			}
			records = append(records, beginning...)
		}
		instances = append(instances, s)
	}
	m.muster(instances)
	for _, s := range old {
		if !slices.Contains(m.inForce, s) {
			m.retire(s)
		}
	}
	m.body.kept.Reshaped(shape)
	m.relink()
	if len(records) == 0 {
		return false, nil
	}
	m.writer.Submit(records, m.begun)
	return true, nil
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

// beginInstance makes the member's part of an instance that begins at a base. The records must be
// in the log before the instance's own. It also uses what an earlier life left of the instance on
// disk.
func (m *Member) beginInstance(base protocol.Base, id protocol.InstanceID) (s *memberInstance, records []wal.Record, err error) {
	u := m.pending[id]
	if delete(m.pending, id); u == nil {
		if u, err = member.RecoverPending(m.log, id); err != nil {
			return nil, nil, err
		}
	}
	rec, records, err := u.Begin(base)
	if err != nil {
		return nil, nil, err
	}
	m.body.kept.Begin(id, base.Index)
	s = newMemberInstance(m, id, m.w.courtWith(id, &base.Config))
	s.noted = rec.State.Commit
	if err := s.judges.ledger.Start(m.judged(), foundRecords(&rec)); err != nil {
		return nil, nil, err
	}
	if err := s.judgeHeld(m.body.store); err != nil {
		return nil, nil, err
	}
	return s, records, s.begin(m.session, &rec)
}

// retire ends what the member does through an instance. Another instance takes the proposals that
// took no effect there.
func (m *Member) retire(s *memberInstance) {
	m.retired = append(m.retired, s)
	m.weaver.Forget(s.instance)
	s.judges.end(m.w.weave.End(uint64(s.instance)))
	ended := m.applier.Ended(s.instance)
	s.do(func() { s.hosted.Retire(ended) })
}

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
	m, w := s.m, s.m.w
	if !m.up || w.severed(m, to) {
		return
	}
	w.after(w.between(w.set.DelayMin, w.set.DelayMax), func() {
		o := w.member(to)
		if !o.up || !m.up || !w.linked(m, m.life, o) || !o.up || !m.up {
			return
		}
		if at, _ := o.progress.At(); at.Retired(s.instance) { // the member that asks may never have been a member of that instance
			o.stream(m.id, nil, 0)
		}
	})
}

// overRetired queues a snapshot for an instance that the snapshot says is retired. No core will do
// that if this member has everything else.
func (m *Member) overRetired(meta *member.Meta) {
	for _, s := range m.inForce {
		if meta.Cursor.Retired(s.instance) {
			m.pushInstall(s.instance, &protocol.Base{})
			return
		}
	}
}

// reshape is the operator who asks for another number of instances.
func (w *World) reshape() {
	l := w.leader()
	if l == nil {
		return
	}
	n := 1 + w.pick(5)
	if at := l.applier.Cursor(); at.Reshape != 0 || !l.settled() || n == len(l.inForce) || n > maxInstances {
		return
	}
	w.tracef("FAULT %s is asked for %d instances", l.id, n)
	l.whenAwake(func() { l.step(protocol.Propose{Entries: []protocol.Entry{protocol.NewReshape(n)}}) })
}
