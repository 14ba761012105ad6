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

	"time"
)

// What an instance asks of the member around it: memberInstance implements instance.Host. If the
// member stops during a turn, the rest of that turn reaches nobody.

var entriesUnreadable = count.New("entries_that_could_not_be_sent", "entries that could not be sent", count.Staged)

// Now implements instance.Host, as the other methods of memberInstance in this file do.
func (s *memberInstance) Now() time.Duration { return s.m.clock() }

func (s *memberInstance) Siblings() instance.Siblings { return s.m.crew }

func (s *memberInstance) Input(in protocol.Input) { s.step(in) }

func (s *memberInstance) Publish(st *protocol.Status) { s.status = st }

func (s *memberInstance) NoteLoad(load instance.Load) { s.load = load }

func (s *memberInstance) NoteWeave(*instance.WeaveStatus) {}

func (s *memberInstance) Relink(changed bool) {
	if s.m.up && (changed || s.m.links.Lingers()) {
		s.m.relink()
	}
}

func (s *memberInstance) Fail(err error) {
	var expelled *member.ExpelledError
	switch {
	case !s.m.up:
	case errors.As(err, &expelled):
		s.m.w.expel(s.m, expelled)
	default:
		s.m.fail(err)
	}
}

// Condemn implements instance.Host: the member stops when the turn ends.
func (s *memberInstance) Condemn(f *protocol.Forgot) {
	s.m.condemned = s.m.dir.Condemn(f)
}

func (s *memberInstance) Waiting() (bytes int, full bool) {
	return s.m.proposals.WaitingFor(s.instance)
}

func (s *memberInstance) TakeBatch() *intake.Batch {
	s.m.scatter()
	b := s.m.proposals.TakeFor(s.instance)
	s.m.judgeHeld(b)
	return b
}

// TakeReads implements instance.Host. The first instance begins a group, and has the other instances asked too.
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

func (s *memberInstance) Risen() uint64 { return s.m.weaver.Risen }

func (s *memberInstance) Weave(t instance.InstanceRounds, wake []protocol.InstanceID) (order.Slot, []protocol.InstanceID) {
	wake = s.m.weaver.Set(t, wake)
	return s.m.weaver.Want(s.instance), wake
}

func (s *memberInstance) Wanted() order.Slot { return s.m.weaver.Want(s.instance) }

func (s *memberInstance) Refused(r protocol.Rejection) { s.m.operations.Refused(r) }

func (s *memberInstance) Frame(msg *protocol.Message) ([][]byte, error) {
	f := instance.Framer{Load: lifecycle.LoadFrom(s.m.log), Bodies: s.m.body.store, LeftOut: s.m.body.access.LeftOut}
	return f.Frame(msg)
}

// Transmit implements instance.Host. It judges the message first.
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
	w.judgeSaid(msg)
	return w.transmit(msg, stream, frame)
}

// Unreadable implements instance.Host. It judges whether the reason is allowed.
func (s *memberInstance) Unreadable(msg *protocol.Message, err error, remedy instance.Remedy) {
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

func (s *memberInstance) SendSnapshot(to protocol.MemberID, o *member.SnapshotOffer) {
	if s.m.up {
		s.m.exchange.Ask(to, o)
	}
}

// Submit implements instance.Host.
func (s *memberInstance) Submit(records []wal.Record, seq uint64) {
	m := s.m
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
	if at > 0 {
		s.BodiesCompacted(at)
		s.CutLog(at)
	}
}

// CutLog implements instance.Host.
func (s *memberInstance) CutLog(at protocol.Index) {
	if s.m.up {
		s.cut(at)
	}
}

func (s *memberInstance) Harmed(err *member.LoadError) {
	if s.m.up {
		s.m.harm(err)
	}
}

func (s *memberInstance) At() (order.Cursor, []protocol.Config) {
	return s.m.progress.At()
}

func (s *memberInstance) Install(base *protocol.Base) {
	if s.m.up {
		s.m.pushInstall(s.instance, base)
	}
}

func (s *memberInstance) Commit(c intake.CommittedEntries) {
	if s.m.up {
		s.m.push(apply.ApplyItem{Commit: c})
	}
}

func (s *memberInstance) ReadPoint(g *intake.ReadGroup, index protocol.Index) {
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

func (s *memberInstance) FailRead(g *intake.ReadGroup, err error) {
	if s.m.progress.FailRead(g) {
		g.Done(err)
		s.m.readDone()
	}
}

func (s *memberInstance) WantSnapshot() { s.m.push(apply.ApplyItem{Due: true}) }

func (s *memberInstance) TendState(st *protocol.Status) {
	if s.m.up {
		s.m.exchange.Tend(st)
	}
}

func (s *memberInstance) BodiesInstalling(index protocol.Index) {
	s.m.body.kept.Installing(s.instance, index)
}

func (s *memberInstance) BodiesCommitted(entries []protocol.Entry) {
	s.m.body.cache.Committed(s.instance, entries)
	s.m.body.kept.Committed(s.instance, entries)
}

func (s *memberInstance) BodiesCompacted(index protocol.Index) {
	if s.m.up {
		s.m.compacted(s.instance, index)
	}
}

func (s *memberInstance) Want(refs []protocol.BodyRef) {
	if s.m.up {
		s.m.body.inbox.Want(refs)
		s.m.wakeBodies()
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

func (c *crew) Tell(i int, in protocol.Input) { c.instances[i].step(in) }
