package node

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

var EntriesUnreadable = count.New("entries_that_could_not_be_sent", "entries that could not be sent", count.Staged)

// carry executes the output of a turn of the instance, in the order of the fields. If the member stops meanwhile, the
// rest is lost.
func (s *MemberInstance) carry(t *instance.Turn) {
	if t.AskMissing != 0 {
		s.Member.askMissing(t.AskMissing, s.Instance)
	}
	if t.Behind != 0 && s.Member.Up {
		s.Member.Exchange.Missing(t.Behind, s.Instance)
	}
	if t.Install != nil {
		s.Member.Body.kept.Installing(s.Instance, t.Install.Index)
		if s.Member.Up {
			s.Member.pushInstall(s.Instance, t.Install)
		}
	}
	if t.Forgot != nil {
		s.Member.condemned = s.Member.dir.Condemn(t.Forgot) // the member stops when the turn is over
	}
	if t.Stop != nil {
		s.fail(t.Stop)
	}
	for _, msg := range t.Send {
		s.send(msg)
	}
	if t.Seq > 0 {
		s.submit(t.Persist, t.Seq)
	}
	for _, b := range t.Accepted {
		b.Accept(s.Member.Clock())
	}
	if len(t.Commit.Entries) > 0 {
		s.commit(t.Commit)
	}
	for _, f := range t.Failed {
		f.Batch.Fail(f.Err)
	}
	s.carryReads(t)
	if len(t.Want) > 0 && s.Member.Up {
		s.Member.Body.inbox.Want(t.Want)
		s.Member.Body.wake()
	}
	for _, refused := range t.Refused {
		s.Member.Operations.Refused(refused)
	}
	if t.Suspect != 0 {
		s.suspect(t.Suspect)
	}
	for _, o := range t.Snapshots {
		if s.Member.Up {
			s.Member.Exchange.Ask(o.To, o.Offer)
		}
	}
	s.carryEnd(t)
}

// carryEnd publishes the status of the instance, and executes what is due at the end of a turn.
func (s *MemberInstance) carryEnd(t *instance.Turn) {
	m := s.Member
	if t.Status != nil {
		s.status = t.Status
	}
	if t.Changed && m.Up {
		m.relink()
	}
	if t.Closed && m.Up {
		m.toPlans.post(func() { m.closed(s.Instance) })
	}
	if t.Departed != nil {
		s.fail(t.Departed)
	}
	if t.Tend && m.Up {
		m.Exchange.Tend(t.Status)
	}
	if t.Tend && m.Up && m.Links.Lingers() {
		m.relink()
	}
	if t.WantSnapshot {
		m.Push(apply.ApplyItem{Due: true})
	}
	s.CutLog(t.Cut)
}

// suspect tells the other instances that a leader was silent for too long.
func (s *MemberInstance) suspect(leader protocol.MemberID) {
	for _, o := range s.Member.InForce {
		if o != s {
			o.Step(protocol.Suspect{Member: leader})
		}
	}
}

func (s *MemberInstance) fail(err error) {
	var expelled *member.ExpelledError
	switch {
	case !s.Member.Up:
	case errors.As(err, &expelled):
		s.Member.Env.Observer.Expelled(s.Member, expelled)
	default:
		s.Member.fail(err)
	}
}

// Waiting implements instance.Source, as TakeBatch, NoteLoad and TakeReads do.
func (s *MemberInstance) Waiting() (bytes int, full bool, path protocol.Path) {
	return s.Member.Proposals.WaitingFor(s.Instance)
}

func (s *MemberInstance) TakeBatch() *intake.Batch {
	s.Member.scatter()
	b := s.Member.Proposals.TakeFor(s.Instance)
	judgeHeldBatch(s.Member, b)
	return b
}

func (s *MemberInstance) NoteLoad(load instance.Load) { s.load = load }

// TakeReads implements instance.Source. The first instance begins a group, and requests read indexes of other
// instances too.
func (s *MemberInstance) TakeReads() []*intake.ReadGroup {
	asked, gathered := s.reads.Take(s.Member.Progress.Asking())
	for _, g := range gathered {
		if g != nil && s.Member.beginRead(g) {
			asked = append(asked, g)
		}
	}
	return asked
}

// beginRead makes a group wait for read indexes, and passes it to the instances that are to be asked, except the first,
// which calls it. It reports whether that one is to be asked too.
func (r *Running) beginRead(g *intake.ReadGroup) bool {
	c := r.Crew
	if !r.Progress.Ask(g, c.since, c.ids, instance.ReadThrough(c)) {
		return false
	}
	one := g.One()
	for _, s := range c.Instances[1:] {
		if one == 0 || one == s.Instance {
			s.handRead(g)
		}
	}
	return one == 0 || one == c.ids[0]
}

func (s *MemberInstance) handRead(g *intake.ReadGroup) {
	if s.reads.Hand(g) {
		s.wake()
	} else {
		s.Member.askAgain([]*intake.ReadGroup{g})
	}
}

// retire ends the member's proposals and reads in the instance, and moves them to other instances.
func (s *MemberInstance) retire() {
	m := s.Member
	batches, groups := s.Hosted.Retire()
	m.again(batches)
	m.askAgain(append(s.reads.Retire(), groups...))
}

// again returns batches to the queue.
func (m *Member) again(batches []*intake.Batch) {
	if len(batches) > 0 {
		m.Env.Violate(m.ID, m.Proposals.Again(batches))
		m.WakeTakers()
	}
}

// Risen implements instance.Rounds, as ReportRounds and Wanted do.
func (s *MemberInstance) Risen() uint64 { return s.Member.weaver.Risen }

func (s *MemberInstance) ReportRounds(
	t instance.InstanceRounds, wake []protocol.InstanceID,
) (order.Slot, []protocol.InstanceID) {
	wake = s.Member.weaver.Set(t, wake)
	return s.Member.weaver.Want(s.Instance), wake
}

func (s *MemberInstance) Wanted() order.Slot { return s.Member.weaver.Want(s.Instance) }

// send sends a message, or reports to the instance why it cannot.
func (s *MemberInstance) send(msg *protocol.Message) {
	sent, err := s.sender.Send(msg)
	switch {
	case err != nil:
		s.unsent(msg, err)
	case !sent:
		s.Step(protocol.Unreachable{Member: msg.To})
	}
}

// unsent handles a message whose entries or bodies cannot be read here.
func (s *MemberInstance) unsent(msg *protocol.Message, err error) {
	at, _ := s.Member.Progress.At()
	u := s.Hosted.Unsent(msg, err, at.Point(s.Instance).Index)
	if u.Harmed != nil && s.Member.Up {
		s.Member.harm(u.Harmed)
	}
	s.judgeUnsent(msg, err, u.Remedy)
	if u.Fail != nil {
		s.fail(u.Fail)
	}
	for _, in := range u.Inputs {
		s.Step(in)
	}
}

// Frame implements instance.Links.
func (s *MemberInstance) Frame(msg *protocol.Message) ([][]byte, error) {
	f := instance.Framer{Load: lifecycle.LoadFrom(s.Member.Log), Bodies: s.Member.Body.Store, LeftOut: s.Member.Body.access.LeftOut}
	return f.Frame(msg)
}

// Transmit implements instance.Links. It judges the message first.
func (s *MemberInstance) Transmit(_ *protocol.Message, stream uint32, parts [][]byte) bool {
	w := s.Member.Env
	if !s.Member.Up {
		return true
	}
	frame := slices.Concat(parts...)
	msg, err := protocol.DecodeMessage(frame, s.Judges.Core.Codec)
	if err != nil {
		w.Violate(s.Member.ID, err)
		return false
	}
	w.Violate(s.Member.ID, w.Court.Said(msg, s.Member.Judged(), s.Member.Strange()))
	return w.transmit(msg, stream, frame)
}

// judgeUnsent checks whether a message may be unreadable for that reason.
func (s *MemberInstance) judgeUnsent(msg *protocol.Message, err error, remedy instance.Remedy) {
	w := s.Member.Env
	var load *member.LoadError
	var compacted *wal.CompactedError
	var unheld *body.UnheldError
	var damage *wal.CorruptError
	switch {
	case !s.Member.Up:
	case errors.As(err, &load) && member.FaultOf(err).Sick():
		w.Count(EntriesUnreadable)
		w.Tracef("%s   cannot send to %s, remedy %d: %v", s.Member.ID, msg.To, remedy, load)
	case errors.As(err, &compacted) || msg.Term < s.Witness.Latest.Term:
		// The message waited for the disk. Meanwhile the log was cut or replaced.
	case errors.As(err, &unheld) && unheld.Ref.Index <= s.Inst.Core().Status().Commit:
		// Likewise. The entry is committed now, and its body was released or is being restored.
	case errors.As(err, &unheld) && s.Member.replacedBody(unheld.Ref):
		// Likewise. Another value was accepted in that slot, from a member that does not need the message any more.
	case errors.Is(err, device.ErrIO): // of a body
	case errors.As(err, &damage):
		// The member holds damaged bytes. A copy of them is on its way.
	default:
		w.Violate(s.Member.ID, &entryError{err})
	}
}

// replacedBody reports whether the body of a later proposal replaced this one.
func (r *Running) replacedBody(ref protocol.BodyRef) bool {
	held, ok := r.Body.Store.Find(uint32(ref.Instance), uint64(ref.Index))
	return ok && held.Term > uint64(ref.Term)
}

// submit passes the records of all steps up to seq to the disk.
func (s *MemberInstance) submit(records []wal.Record, seq uint64) {
	m := s.Member
	if m.Own.MutantName() == member.MutantDurableEarly {
		s.Step(protocol.Persisted{Seq: seq})
	}
	if !m.Up {
		return
	}
	for _, note := range s.notes {
		m.Env.Violate(m.ID, note())
	}
	s.notes = nil
	if len(records) > 0 {
		s.recorded = seq
		if s.unwritten == 0 {
			s.unwritten = m.Clock()
		}
	}
	m.Env.Mix(seq)
	nth, commit := m.Writer.count+1, s.noting
	m.Writer.Submit(records, func(err error) { s.wrote(seq, nth, commit, err) })
}

// CutLog removes the log up to an entry, with the bodies; 0: nothing.
func (s *MemberInstance) CutLog(at protocol.Index) {
	if at == 0 || !s.Member.Up {
		return
	}
	s.Member.Body.compacted(s.Instance, at)
	if s.Member.Up {
		s.cut(at)
	}
}

func (s *MemberInstance) commit(c intake.CommittedEntries) {
	s.Member.Body.cache.Committed(s.Instance, c.Entries)
	s.Member.Body.kept.Committed(s.Instance, c.Entries)
	if s.Member.Up {
		s.Member.Push(apply.ApplyItem{Commit: c})
	}
}

// carryReads makes groups wait until their read indexes are applied, and fails the groups that get none.
func (s *MemberInstance) carryReads(t *instance.Turn) {
	for i := range t.ReadIndexes {
		s.readIndex(t.ReadIndexes[i].Group, t.ReadIndexes[i].Index)
	}
	for _, g := range t.FailedReads {
		if s.Member.Progress.FailRead(g) {
			g.Done(member.ErrReadTimeout)
			s.Member.readDone()
		}
	}
}

func (s *MemberInstance) readIndex(g *intake.ReadGroup, index protocol.Index) {
	m := s.Member
	complete, ready, look := m.Progress.AddReadIndex(g, s.Instance, index)
	if look {
		m.Look()
	}
	if complete {
		m.readDone()
	}
	if ready {
		g.Done(nil)
	}
}

// Crew is the active instances of a member. It implements instance.Siblings.
type Crew struct {
	ids       []protocol.InstanceID
	since     protocol.Position
	Instances []*MemberInstance
}

// IDs implements instance.Siblings, as the methods below do.
func (c *Crew) IDs() []protocol.InstanceID { return c.ids }

// Load is the known load of an instance. If the next batch must go to a certain instance, all others appear to have a
// high load.
func (c *Crew) Load(i int) instance.Load {
	s := c.Instances[i]
	if to := s.Member.destination(); to != 0 && to != s.Instance {
		return instance.Load{Pending: 1 << 30}
	}
	return s.load
}

func (c *Crew) Status(i int) *protocol.Status { return c.Instances[i].status }

// Wake implements instance.Siblings. Sometimes the instance notices it late.
func (c *Crew) Wake(i int) {
	s := c.Instances[i]
	if w := s.Member.Env; w.Chance(w.Set.Weave.Lazy) {
		s.Member.Later(w.Between(0, w.Set.Heartbeat), s.wake)
		return
	}
	s.wake()
}

// First returns the first n instances of the crew, as a member sees it that does not know the others yet.
func (c *Crew) First(n int) *Crew { return &Crew{ids: c.ids[:n], Instances: c.Instances[:n]} }
