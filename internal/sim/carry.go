package sim

import (
	"errors"
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/lifecycle"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

var entriesUnreadable = count.New("entries_that_could_not_be_sent", "entries that could not be sent", count.Staged)

// carry carries out what a turn of the instance wants, in the order of the fields. If the member stops meanwhile, the
// rest reaches no one.
func (s *memberInstance) carry(t *instance.Turn) {
	if t.AskMissing != 0 {
		s.askMissing(t.AskMissing)
	}
	if t.Install != nil {
		s.m.body.kept.Installing(s.instance, t.Install.Index)
		if s.m.up {
			s.m.pushInstall(s.instance, t.Install)
		}
	}
	if t.Forgot != nil {
		s.m.condemned = s.m.dir.Condemn(t.Forgot) // the member stops when the turn is over
	}
	if t.Diverged != nil {
		s.fail(t.Diverged)
	}
	for _, msg := range t.Send {
		s.send(msg)
	}
	if t.Seq > 0 {
		s.submit(t.Persist, t.Seq)
	}
	for _, b := range t.Accepted {
		b.Accept()
	}
	if len(t.Commit.Entries) > 0 {
		s.commit(t.Commit)
	}
	for _, f := range t.Failed {
		f.Batch.Fail(f.Err)
	}
	s.carryReads(t)
	if len(t.Want) > 0 && s.m.up {
		s.m.body.inbox.Want(t.Want)
		s.m.wakeBodies()
	}
	for _, refused := range t.Refused {
		s.m.operations.Refused(refused)
	}
	if t.Suspect != 0 {
		s.suspect(t.Suspect)
	}
	for _, o := range t.Snapshots {
		if s.m.up {
			s.m.exchange.Ask(o.To, o.Offer)
		}
	}
	s.carryEnd(t)
}

// carryEnd publishes how the instance stands, and carries out what the end of a turn brings.
func (s *memberInstance) carryEnd(t *instance.Turn) {
	m := s.m
	if t.Status != nil {
		s.status = t.Status
	}
	if t.Changed && m.up {
		m.relink()
	}
	if t.Departed != nil {
		s.fail(t.Departed)
	}
	if t.Tend && m.up {
		m.exchange.Tend(t.Status)
	}
	if t.Tend && m.up && m.links.Lingers() {
		m.relink()
	}
	if t.WantSnapshot {
		m.push(apply.ApplyItem{Due: true})
	}
	s.cutLog(t.Cut)
}

// suspect has the other instances take in that a leader has not been heard for too long.
func (s *memberInstance) suspect(leader protocol.MemberID) {
	for _, o := range s.m.inForce {
		if o != s {
			o.step(protocol.Suspect{Member: leader})
		}
	}
}

func (s *memberInstance) fail(err error) {
	var expelled *member.ExpelledError
	switch {
	case !s.m.up:
	case errors.As(err, &expelled):
		s.m.w.observer.expelled(s.m, expelled)
	default:
		s.m.fail(err)
	}
}

// Waiting implements instance.Source, as TakeBatch, NoteLoad and TakeReads do.
func (s *memberInstance) Waiting() (bytes int, full bool) {
	return s.m.proposals.WaitingFor(s.instance)
}

func (s *memberInstance) TakeBatch() *intake.Batch {
	s.m.scatter()
	b := s.m.proposals.TakeFor(s.instance)
	s.m.judgeHeld(b)
	return b
}

func (s *memberInstance) NoteLoad(load instance.Load) { s.load = load }

// TakeReads implements instance.Source. The first instance begins a group, and has the other instances asked too.
func (s *memberInstance) TakeReads() []*intake.ReadGroup {
	asked, gathered := s.reads.Take(s.m.progress.Asking())
	for _, g := range gathered {
		if g != nil && s.m.beginRead(g) {
			asked = append(asked, g)
		}
	}
	return asked
}

// beginRead makes a group wait for the read indexes of all instances, and hands it to those but the first, which calls
// it. It reports false if the group has ended.
func (m *Member) beginRead(g *intake.ReadGroup) bool {
	c := m.crew
	if !m.progress.Ask(g, c.since, c.ids) {
		return false
	}
	for _, s := range c.instances[1:] {
		s.handRead(g)
	}
	return true
}

func (s *memberInstance) handRead(g *intake.ReadGroup) {
	if s.reads.Hand(g) {
		s.wake()
	} else {
		s.m.askAgain([]*intake.ReadGroup{g})
	}
}

// retire ends what the member does through the instance, and has other instances do it.
func (s *memberInstance) retire() {
	m := s.m
	batches, groups := s.hosted.Retire()
	m.again(batches)
	m.askAgain(append(s.reads.Retire(), groups...))
}

// again has batches taken again.
func (m *Member) again(batches []*intake.Batch) {
	if len(batches) > 0 {
		m.w.Violate(m.id, m.proposals.Again(batches))
		m.wakeTakers()
	}
}

// Risen implements instance.Rounds, as Weave and Wanted do.
func (s *memberInstance) Risen() uint64 { return s.m.weaver.Risen }

func (s *memberInstance) Weave(t instance.InstanceRounds, wake []protocol.InstanceID) (order.Slot, []protocol.InstanceID) {
	wake = s.m.weaver.Set(t, wake)
	return s.m.weaver.Want(s.instance), wake
}

func (s *memberInstance) Wanted() order.Slot { return s.m.weaver.Want(s.instance) }

// send sends a message, or has the instance know why it is not sent.
func (s *memberInstance) send(msg *protocol.Message) {
	sent, err := s.sender.Send(msg)
	switch {
	case err != nil:
		s.unsent(msg, err)
	case !sent:
		s.step(protocol.Unreachable{Member: msg.To})
	}
}

// unsent carries out what follows from a message that cannot be read here.
func (s *memberInstance) unsent(msg *protocol.Message, err error) {
	at, _ := s.m.progress.At()
	u := s.hosted.Unsent(msg, err, at.Point(s.instance).Index)
	if u.Harmed != nil && s.m.up {
		s.m.harm(u.Harmed)
	}
	s.judgeUnsent(msg, err, u.Remedy)
	if u.Fail != nil {
		s.fail(u.Fail)
	}
	for _, in := range u.Inputs {
		s.step(in)
	}
}

// Frame implements instance.Links.
func (s *memberInstance) Frame(msg *protocol.Message) ([][]byte, error) {
	f := instance.Framer{Load: lifecycle.LoadFrom(s.m.log), Bodies: s.m.body.store, LeftOut: s.m.body.access.LeftOut}
	return f.Frame(msg)
}

// Transmit implements instance.Links. It judges the message first.
func (s *memberInstance) Transmit(_ protocol.MemberID, stream uint32, parts [][]byte) bool {
	w := s.m.w
	if !s.m.up {
		return true
	}
	frame := slices.Concat(parts...)
	msg, err := protocol.DecodeMessage(frame, w.set.codec())
	if err != nil {
		w.Violate(s.m.id, err)
		return false
	}
	w.Violate(s.m.id, w.court.Said(msg, s.m.judged(), s.m.strange()))
	return w.transmit(msg, stream, frame)
}

// judgeUnsent judges whether a message may be unreadable for that reason.
func (s *memberInstance) judgeUnsent(msg *protocol.Message, err error, remedy instance.Remedy) {
	w := s.m.w
	var load *member.LoadError
	var compacted *wal.CompactedError
	var unheld *body.UnheldError
	var damage *wal.CorruptError
	switch {
	case !s.m.up:
	case errors.As(err, &load) && member.FaultOf(err).Sick():
		w.Count(entriesUnreadable)
		w.Tracef("%s   cannot send to %s, remedy %d: %v", s.m.id, msg.To, remedy, load)
	case errors.As(err, &compacted) || msg.Term < s.witness.status.Term:
		// The message waited for the disk. Meanwhile the log was cut or replaced.
	case errors.As(err, &unheld) && unheld.Ref.Index <= s.inst.Core().Status().Commit:
		// Likewise. The entry is committed now, and its body was released or is being restored.
	case errors.As(err, &unheld) && s.m.replacedBody(unheld.Ref):
		// Likewise. Something else was accepted in that slot, from somebody who needs the message no more.
	case errors.Is(err, device.ErrIO): // of a body
	case errors.As(err, &damage):
		// The member holds damaged bytes. A copy of them is on its way.
	default:
		w.Violate(s.m.id, &entryError{err})
	}
}

// replacedBody reports whether the body of a later proposal took this one's place.
func (m *Member) replacedBody(ref protocol.BodyRef) bool {
	held, ok := m.body.store.Find(uint32(ref.Instance), uint64(ref.Index))
	return ok && held.Term > uint64(ref.Term)
}

// submit hands the records of all steps up to seq to the disk.
func (s *memberInstance) submit(records []wal.Record, seq uint64) {
	m := s.m
	if m.own.mutant() == member.MutantDurableEarly {
		s.step(protocol.Persisted{Seq: seq})
	}
	if !m.up {
		return
	}
	for _, note := range s.notes {
		m.w.Violate(m.id, note())
	}
	s.notes = nil
	s.submitted = seq
	if len(records) > 0 {
		s.recorded = seq
		if s.unwritten == 0 {
			s.unwritten = m.clock()
		}
	}
	m.w.Mix(seq)
	nth, commit := m.writer.count+1, s.noting
	m.writer.Submit(records, func(err error) { s.wrote(seq, nth, commit, err) })
}

// cutLog cuts the front of the log up to an entry, with the bodies; 0: nothing is to be cut.
func (s *memberInstance) cutLog(at protocol.Index) {
	if at == 0 || !s.m.up {
		return
	}
	s.m.compacted(s.instance, at)
	if s.m.up {
		s.cut(at)
	}
}

func (s *memberInstance) commit(c intake.CommittedEntries) {
	s.m.body.cache.Committed(s.instance, c.Entries)
	s.m.body.kept.Committed(s.instance, c.Entries)
	if s.m.up {
		s.m.push(apply.ApplyItem{Commit: c})
	}
}

// carryReads has groups wait until what their read indexes say is applied, and fails those that get none.
func (s *memberInstance) carryReads(t *instance.Turn) {
	for i := range t.ReadIndexes {
		s.readIndex(t.ReadIndexes[i].Group, t.ReadIndexes[i].Index)
	}
	for _, g := range t.FailedReads {
		if s.m.progress.FailRead(g) {
			g.Done(member.ErrReadTimeout)
			s.m.readDone()
		}
	}
}

func (s *memberInstance) readIndex(g *intake.ReadGroup, index protocol.Index) {
	m := s.m
	complete, ready := m.progress.ReadPoint(g, s.instance, index)
	if m.progress.Doubtful() {
		m.push(apply.ApplyItem{Look: true})
	}
	if complete {
		m.readDone()
	}
	if ready {
		g.Done(nil)
	}
}

// crew is the instances in force on a member. It implements instance.Siblings.
type crew struct {
	ids       []protocol.InstanceID
	since     protocol.Round
	instances []*memberInstance
}

// IDs implements instance.Siblings, as the methods below do.
func (c *crew) IDs() []protocol.InstanceID { return c.ids }

// Load is what an instance is known to have to do. If the next batch must go to a certain instance,
// all others seem to have a great deal to do.
func (c *crew) Load(i int) instance.Load {
	s := c.instances[i]
	if to := s.m.destination(); to != 0 && to != s.instance {
		return instance.Load{Pending: 1 << 30}
	}
	return s.load
}

func (c *crew) Status(i int) *protocol.Status { return c.instances[i].status }

// Wake implements instance.Siblings. Sometimes the instance notices it late.
func (c *crew) Wake(i int) {
	s := c.instances[i]
	if w := s.m.w; w.Chance(w.set.Weave.Lazy) {
		s.m.later(w.Between(0, w.set.Heartbeat), s.wake)
		return
	}
	s.wake()
}
