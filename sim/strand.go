package sim

import (
	"errors"
	"slices"
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/wal"
)

// strand is one instance on a running member: what production has an event loop for. All
// share the member's disk, state machine and clients.
type strand struct {
	// notes are what the judge of bodies is told when the records of the outbox are handed to
	// the disk.
	notes    []func() error
	m        *Member
	instance protocol.InstanceID
	court    *court
	inst     *member.Instance
	witness  *witness
	out      member.Outbox

	keep      member.LogKeeper
	submitted uint64         // the last step whose records were handed over
	persisted uint64         // the last step that is durable, as the disk says
	durable   uint64         // and as the instance was told
	told      bool           // it will look what is durable
	fromDisk  line           // what the disk says to the event loop
	noted     protocol.Index // the commit index on disk
	noting    protocol.Index // the one that is being written
	recorded  uint64         // the last of them that had records
	unwritten time.Duration  // local time since when records wait for the disk, or later; 0: none do
	mover     member.Mover
	following member.Following
	unread    member.Unread
	harmed    protocol.Index // the last index of which the record on disk is damaged; 0: none
	search    member.Search
	ticked    bool              // it has begun
	vanished  bool              // it was retired, and does nothing any more but hold bodies
	suspects  protocol.MemberID // a leader of whom nothing is heard, for the other instances; 0: none

	groups map[uint64]*member.ReadGroup // reads under way, by context

	news     bool // the core has to be told how this member stands with its bodies
	carrying bool // an outbox is being carried out

	upgrades member.Upgrades // bodies on their way to the disk apart from their entries
}

// open makes the member's parts of all instances from what its disk holds.
func (m *Member) open(r *running, meta member.Meta) error {
	var logs []member.InstanceLog
	for _, id := range meta.Cursor.Instances() {
		rec, err := member.Recover(r.log, id, meta)
		if err != nil {
			return err
		}
		if err := m.w.courtOf(id).ledger.Start(m.judged(), foundRecords(&rec)); err != nil {
			return err
		}
		logs = append(logs, member.InstanceLog{Instance: id, Recovered: &rec})
	}
	r.unborn = map[protocol.InstanceID]*member.Unborn{}
	for _, id := range r.log.Instances() {
		if id := protocol.InstanceID(id); meta.Cursor.Woven() && id >= meta.Cursor.Fresh {
			u, err := member.RecoverUnborn(r.log, id)
			if err != nil {
				return err
			}
			r.unborn[id] = u
			logs = append(logs, member.InstanceLog{Instance: id, Recovered: &u.Recovered})
		}
	}
	if err := m.openBodies(r, meta.Cursor.Instances(), logs); err != nil {
		return err
	}
	for _, l := range logs[:len(meta.Cursor.Points)] {
		s := newStrand(m, l.Instance, m.w.courtOf(l.Instance))
		s.noted = l.Recovered.State.Commit
		if err := s.judgeHeld(r.body.store); err != nil {
			return err
		}
		if err := s.begin(r.session, l.Recovered); err != nil {
			return err
		}
		r.strands = append(r.strands, s)
	}
	r.strand = r.strands[0]
	return m.judgeRetired(r)
}

// judgeRetired tells the judges of instances that are retired what is held of them.
func (m *Member) judgeRetired(r *running) error {
	for _, c := range m.w.courts {
		if m.strange() || r.unborn[c.instance] != nil || m.among(r.strands, c.instance) != nil {
			continue
		}
		if err := c.bodies.Start(m.judged(), m.found(r.body.store, c.instance)); err != nil {
			return err
		}
	}
	return nil
}

func newStrand(m *Member, instance protocol.InstanceID, c *court) *strand {
	return &strand{m: m, instance: instance, court: c, fromDisk: line{m: m}}
}

// begin makes the instance from what was recovered.
func (s *strand) begin(session protocol.Session, rec *protocol.Recovered) error {
	m, set := s.m, s.m.own
	core, err := set.newCore(m.id, s.instance, *rec)
	if err != nil {
		return err
	}
	s.witness = newWitness(s, core)
	config := member.InstanceConfig{
		Self: m.id, Instance: s.instance, Session: session,
		RetryAfter: set.Election, GiveUp: set.GiveUp, Depth: set.Depth, ForwardBytes: set.Raft.MaxInflightBytes, Backlog: set.Backlog,
		Mutant: set.mutant(),
	}
	if set.woven() {
		config.Woven = rec
	}
	s.groups = map[uint64]*member.ReadGroup{}
	s.inst = member.NewInstance(config, s.witness)
	s.keep = member.LogKeeper{Bytes: set.KeepLogBytes, Mutant: set.mutant()}
	return nil
}

// step tells the instance that something happened, and carries out what follows.
func (s *strand) step(in protocol.Input) {
	if s.m.up && !s.vanished {
		s.takeNews()
		held := s.inst.HeldUp()
		s.inst.Step(s.m.turn.Now(), in, &s.out)
		s.m.w.events.HeldUp += int(s.inst.HeldUp() - held)
		s.m.flush()
	}
}

// leads reports whether the member leads the instance.
func (s *strand) leads() bool { return s.witness.status.Role == protocol.Leader }

// busy reports whether there is anything to carry out.
func (s *strand) busy() bool {
	return len(s.out.Send) > 0 || s.out.Seq != s.submitted || !s.out.Empty()
}

// carryOut carries out the outbox, in the order that it demands.
func (s *strand) carryOut() {
	m := s.m
	out := s.out
	s.out = member.Outbox{Seq: out.Seq}
	defer func(was bool) { s.carrying = was }(s.carrying)
	s.carrying = true
	if out.Changed {
		if m.learn(); !m.up {
			return
		}
		m.followMembers()
	}
	if out.Forgot != nil {
		s.condemn(out.Forgot, out.Send)
		return
	}
	s.send(out.Send)
	if s.persist(&out); !m.up {
		return
	}
	if out.Install != nil {
		s.keep.Begin(out.Install.Index, m.queue.Total())
		m.body.kept.Installing(s.instance, out.Install.Index)
		m.pushInstall(s.instance, out.Install)
	}
	if len(out.Commit) > 0 {
		m.body.cache.Committed(s.instance, out.Commit)
		m.body.kept.Committed(s.instance, out.Commit)
		m.push(member.ApplyItem{Commit: s.inst.Commitment(&out)})
	}
	for _, f := range out.Failed {
		f.Batch.Fail(f.Err)
	}
	s.answerReads(&out)
	s.refuse(out.Refused)
	for _, to := range out.Snapshots {
		s.sendSnapshot(to)
	}
	if len(out.Want) > 0 {
		m.body.inbox.Want(out.Want)
		m.wakeBodies()
	}
	if m.up {
		m.propose()
	}
}

func (s *strand) send(messages []*protocol.Message) {
	w := s.m.w
	for _, msg := range messages {
		full, err := s.resident(msg)
		var load *member.LoadError
		var compacted *wal.CompactedError
		var unheld *member.UnheldError
		var damage *wal.CorruptError
		switch {
		case err == nil:
			w.judgeSaid(full)
			w.send(full)
		case errors.As(err, &load) && member.FaultOf(err).Sick():
			s.unreadable(msg, load)
		case errors.As(err, &compacted) || msg.Term < s.witness.status.Term:
			// The message waited for the disk; meanwhile the log was cut, or replaced.
		case errors.As(err, &unheld) && unheld.Ref.Index <= s.inst.Core().Status().Commit:
			// As before: it is committed now, and was released, or is being restored.
		case errors.Is(err, errIO): // of a body
			s.m.later(0, func() { s.step(protocol.Unreachable{Member: msg.To}) })
		case errors.As(err, &damage):
			// What is held went bad; a copy of it is on its way.
		default:
			w.violate(s.m.id, &entryError{err})
		}
	}
}

// unreadable is about a message of which an entry cannot be read, as in the production loop.
func (s *strand) unreadable(msg *protocol.Message, load *member.LoadError) {
	m := s.m
	now, applied := m.clock(), m.applied(s.instance)
	m.w.events.Unreadable++
	m.w.tracef("%s   cannot send to %s: %v", m.id, msg.To, load)
	m.harm(s, load.Index)
	switch s.unread.Remedy(now, m.w.set.Election, member.FaultOf(load.Err), load.Index, applied) {
	case member.RemedySnapshot:
		s.inst.Step(now, protocol.Unsendable{Member: msg.To, Index: load.Index}, &s.out)
	case member.RemedyHandOver:
		s.inst.Step(now, protocol.Transfer{}, &s.out)
	case member.RemedyStop:
		m.fail(&member.LostError{Err: load})
	case member.RemedyWait:
	}
}

type entryError struct{ err error }

func (e *entryError) Error() string { return "entries to send: " + e.err.Error() }
func (e *entryError) Unwrap() error { return e.err }

// resident returns the message as it goes on the wire: what the core does not hold is read
// from the disk, bodies are cut. The core's own entries are shared and stay as they are.
func (s *strand) resident(msg *protocol.Message) (*protocol.Message, error) {
	if !slices.ContainsFunc(msg.Entries, func(e protocol.Entry) bool { return !e.Applicable() || e.BodySize > 0 }) {
		return msg, nil
	}
	full := *msg
	full.Entries = slices.Clone(msg.Entries)
	load := member.LoadFrom(s.m.log)
	for i := range full.Entries {
		e := &full.Entries[i]
		if err := member.MakeResident(s.instance, e, e.Index <= msg.Commit, load, s.m.body.store); err != nil {
			var load *member.LoadError
			if member.IsDamage(err) && !errors.As(err, &load) {
				s.m.body.access.LeftOut(&msg.Entries[i], s.instance)
			}
			return nil, err
		}
		if e.Form != msg.Entries[i].Form {
			s.m.body.access.LeftOut(&msg.Entries[i], s.instance)
		}
	}
	return &full, nil
}

// persist hands records to the disk.
func (s *strand) persist(out *member.Outbox) {
	if out.Seq == s.submitted {
		return
	}
	for _, note := range s.notes {
		s.m.w.violate(s.m.id, note())
	}
	s.notes = nil
	s.submitted = out.Seq
	s.upgrades.Note(out.Persist, out.Seq, s.durable)
	if len(out.Persist) > 0 {
		s.recorded = out.Seq
		if s.unwritten == 0 {
			s.unwritten = s.m.clock()
		}
	}
	m, seq, commit := s.m, out.Seq, s.noting
	m.w.mix(seq)
	nth := m.writer.count + 1
	m.writer.Submit(out.Persist, func(err error) { s.wrote(seq, nth, commit, err) })
}

// noteDurable tells the instance what is durable.
func (s *strand) noteDurable() {
	s.told = false
	if s.persisted > s.durable {
		s.durable = s.persisted
		s.step(protocol.Persisted{Seq: s.durable})
	}
}

// answerReads takes in read points. A read that has those of all instances waits until they
// are applied.
func (s *strand) answerReads(out *member.Outbox) {
	for _, p := range out.Reads {
		if g := s.groups[p.Context]; g != nil {
			delete(s.groups, p.Context)
			if _, ready := s.m.progress.ReadPoint(g, s.instance, p.Index); ready {
				g.Done(nil)
			}
		}
	}
	for _, context := range out.FailedReads {
		if g := s.groups[context]; g != nil {
			delete(s.groups, context)
			if s.m.progress.FailRead(g) {
				g.Done(member.ErrReadTimeout)
			}
		}
	}
}

func (s *strand) refuse(refused []protocol.Rejection) {
	for _, r := range refused {
		for i := range s.m.changes {
			if s.m.changes[i].context == r.Context {
				s.m.changes[i].done(&member.RefusedError{What: "membership change", Reason: r.Reason, Leader: r.Leader})
				s.m.changes = slices.Delete(s.m.changes, i, i+1)
				break
			}
		}
	}
}
