package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/replica"
	"github.com/braidlog/braid/wal"
)

// instance is the one protocol instance that a simulated member hosts.
const instance protocol.InstanceID = 1

// cluster is the simulated cluster's id.
const cluster = 1

// Member is one process of the simulated cluster and its disk. It does what the
// production event loops do around the pure parts of package replica, on virtual time.
type Member struct {
	w    *World
	id   protocol.MemberID
	disk *disk
	// saved is the disk of a state machine that keeps its own state: what it has made
	// durable, or more.
	saved *frozen
	join  bool // not part of the first configuration

	up       bool
	gone     bool // removed and stopped for good
	retiring bool // removed, and soon gone
	life     int  // how often it stopped; callbacks of an earlier life do nothing

	// The clock: local time is offset + rate·global time.
	offset time.Duration
	rate   float64
	// paused is until when the process stands still; slow and stalled are about its disk.
	paused, stalled time.Duration
	slow            bool

	*running // of the present life, or the last one
}

// running is what a crash loses.
type running struct {
	log     *wal.Log
	snaps   *replica.Snapshots
	inst    *replica.Instance
	applier *replica.Applier
	machine *machine
	witness *witness
	out     replica.Outbox
	session protocol.Session

	// the disk: records wait while a sync runs
	records   []wal.Record
	submitted uint64
	syncing   bool
	cut       protocol.Index // the log may be cut here, after the records; 0: no
	oldest    time.Duration  // local time since when the oldest unfinished write waits; 0: none
	moved     time.Duration  // when leadership was given away because of the disk

	batch  uint64         // counts the writes begun: what is in records now comes with the next
	noted  protocol.Index // the commit index on disk
	noting protocol.Index // the one that is being written

	body bodyWork

	// proposals that wait for room, and reads
	commands []pendingCommand
	context  uint64
	asked    []pendingRead // by context, ascending
	waiting  []pendingRead // for index to be applied
	changes  []pendingChange

	queue    []applyItem
	applying bool
	// snapshots
	logged   int // bytes applied since the last snapshot
	saving   bool
	previous protocol.Index // where the last snapshot stands
}

type pendingCommand struct {
	bytes, body []byte
	done        replica.Done
}

type pendingRead struct {
	context uint64
	index   protocol.Index
	done    func(ok bool)
}

type pendingChange struct {
	context uint64
	done    func(error)
}

// applyItem is a commitment, or a snapshot to install.
type applyItem struct {
	commit  replica.Commitment
	install *protocol.Base
}

func newMember(w *World, id protocol.MemberID) *Member {
	return &Member{w: w, id: id, disk: newDisk(), rate: 1}
}

// clock is the member's own idea of time.
func (m *Member) clock() time.Duration {
	return m.offset + time.Duration(float64(m.w.now)*m.rate)
}

// fail stops the member: its disk failed, or it found something that cannot be.
func (m *Member) fail(err error) {
	m.w.tracef("%s stops: %v", m.id, err)
	switch {
	case errors.Is(err, errPower):
		m.w.events.HalfWrites++
		m.w.startLater(m, m.w.between(0, 6*m.w.set.Election))
	case m.disk.failSync:
		m.w.events.DeadDisks++
	default:
		m.w.violate(m.id, fmt.Errorf("stops by itself: %w", err))
	}
	m.crash()
}

// crash stops the process as power loss does: what was not synced may be gone.
func (m *Member) crash() {
	if !m.up {
		return
	}
	m.up = false
	m.w.events.Crashes++
	m.life++ // the rest of the step under way finds the member down
	m.disk = m.disk.crash(m.w.rng)
	if m.machine.durable && m.w.chance(0.5) {
		m.saved = m.machine.freeze() // its own transactions may be ahead of what was asked for
	}
	m.paused, m.stalled = 0, 0
}

// step tells the member's instance that something happened, and carries out what follows.
func (m *Member) step(in protocol.Input) {
	if m.up {
		m.inst.Step(m.clock(), in, &m.out)
		m.flush()
	}
}

// later runs do after d unless the process stopped before; a paused process runs it when
// it goes on.
func (m *Member) later(d time.Duration, do func()) {
	life := m.life
	m.w.after(d, func() {
		if m.up && m.life == life {
			m.whenAwake(do)
		}
	})
}

func (m *Member) whenAwake(do func()) {
	if m.paused > m.w.now {
		m.later(m.paused-m.w.now, do)
		return
	}
	do()
}

func (m *Member) tick() {
	if m.w.tracing() && m.w.out.ticks {
		m.w.tracef("%s tick", m.id)
	}
	m.inst.Step(m.clock(), protocol.Tick{Random: m.w.rng.Uint64()}, &m.out)
	m.leaveStalledDisk()
	m.flush()
	if m.up {
		m.tickBodies()
	}
	if !m.up {
		return
	}
	m.w.judgeMember(m)
	m.later(time.Duration(float64(m.w.set.Tick)/m.rate), m.tick)
}

// leaveStalledDisk gives leadership away while the disk stands still, as the production
// loop does.
func (m *Member) leaveStalledDisk() {
	now, limit := m.clock(), m.w.set.Election
	if m.oldest == 0 || now-m.oldest < limit || m.role() != protocol.Leader || now-m.moved < 5*limit && m.moved != 0 {
		return
	}
	m.moved = now
	m.inst.Step(now, protocol.Transfer{}, &m.out)
}

func (m *Member) role() protocol.Role { return m.witness.status.Role }

// receive takes a frame from a link. A damaged one must be noticed, a whole one accepted.
func (m *Member) receive(frame []byte, damaged bool) {
	if !m.up {
		return
	}
	if m.paused > m.w.now {
		m.later(m.paused-m.w.now, func() { m.receive(frame, damaged) })
		return
	}
	msg, err := protocol.DecodeMessage(frame)
	if damaged != (err != nil) {
		m.w.violate(m.id, fmt.Errorf("frame damaged: %t, decodes: %v", damaged, err))
	}
	if err != nil {
		return
	}
	if m.w.tracing() {
		m.w.tracef("%s ← %s %s", m.id, msg.From, describeMessage(msg))
	}
	if !m.fetched(msg) {
		m.step(msg)
	}
}

// flush carries out the outbox, in the order that it demands.
func (m *Member) flush() {
	if !m.up {
		return
	}
	out := &m.out
	m.propose()
	for m.up && (len(out.Send) > 0 || out.Seq != m.submitted || !out.Empty()) {
		m.send(out.Send)
		if m.persist(); !m.up {
			return
		}
		if out.Install != nil {
			m.body.retention.Installing(out.Install.Index)
			m.skipTo(out.Install)
		}
		if len(out.Commit) > 0 {
			m.body.retention.Committed(out.Commit)
			m.tell()
			m.queue = append(m.queue, applyItem{commit: replica.Commitment{Instance: instance, Entries: out.Commit, Own: out.Own}})
		}
		for _, f := range out.Failed {
			f.Batch.Fail(f.Err)
		}
		m.answerReads()
		m.refuse()
		for _, to := range out.Snapshots {
			m.sendSnapshot(to)
		}
		wanted := slices.Clone(out.Want)
		out.Reset()
		m.wanted(wanted)
		m.apply()
		if m.up {
			m.propose()
		}
	}
}

// skipTo puts the installation of a snapshot into the apply queue. It stands for what was
// queued before; the log may not have that any more.
func (m *Member) skipTo(base *protocol.Base) {
	keep := m.queue[:0]
	for _, it := range m.queue {
		if it.install != nil {
			keep = append(keep, it)
		}
		for _, b := range it.commit.Own {
			b.Fail(replica.ErrResultUnknown)
		}
	}
	m.queue = append(keep, applyItem{install: base})
}

func (m *Member) send(messages []*protocol.Message) {
	for _, msg := range messages {
		full, err := m.resident(msg)
		var compacted *wal.CompactedError
		var unheld *replica.UnheldError
		var damage *wal.CorruptError
		switch {
		case err == nil:
			m.w.judgeSaid(full)
			m.w.send(full)
		case errors.As(err, &compacted) || msg.Term < m.witness.status.Term:
			// The message waited for the disk; meanwhile the log was cut, or replaced.
		case errors.As(err, &unheld) && unheld.Ref.Index <= m.inst.Core().Status().Commit:
			// As before: it is committed now, and was released, or is being restored.
		case errors.As(err, &damage):
			// What is held went bad; a copy of it is on its way.
		default:
			m.w.violate(m.id, fmt.Errorf("entries to send: %w", err))
		}
	}
}

// resident returns the message as it goes on the wire: what the core does not hold is read
// from the disk, bodies are cut. The core's own entries are shared and stay as they are.
func (m *Member) resident(msg *protocol.Message) (*protocol.Message, error) {
	if !slices.ContainsFunc(msg.Entries, func(e protocol.Entry) bool { return !e.Applicable() || e.BodySize > 0 }) {
		return msg, nil
	}
	full := *msg
	full.Entries = slices.Clone(msg.Entries)
	load := replica.LoadFrom(m.log)
	for i := range full.Entries {
		e := &full.Entries[i]
		wish := e.Form
		if err := replica.MakeResident(instance, e, e.Index <= msg.Commit, load, m.body.store); err != nil {
			var damage *wal.CorruptError
			if errors.As(err, &damage) {
				m.damagedAt(e.Index, err)
			}
			return nil, err
		}
		if e.Form != wish {
			m.own(e.Ref(instance)) // looks whether it is damaged
		}
	}
	return &full, nil
}

// propose hands waiting commands to the instance while there is room for a batch.
func (m *Member) propose() {
	for len(m.commands) > 0 {
		first := &m.commands[0]
		ok, wait := m.inst.Room(m.clock(), len(first.bytes)+len(first.body), len(m.commands) >= m.w.set.BatchCommands || first.body != nil)
		if !ok {
			if wait > 0 {
				m.later(wait, m.flush)
			}
			return
		}
		m.inst.Propose(m.clock(), m.nextBatch(), &m.out)
	}
}

// nextBatch takes the commands of one entry. One with a body stands alone.
func (m *Member) nextBatch() *replica.Batch {
	b := replica.NewBatch(m.clock(), 64, 1)
	size, n := 0, 0
	for n < len(m.commands) && n < m.w.set.BatchCommands && (n == 0 || size+len(m.commands[n].bytes) <= m.w.set.BatchBytes) {
		c := &m.commands[n]
		if c.body != nil && n > 0 {
			break
		}
		size += len(c.bytes)
		b.Add(c.bytes, c.done)
		n++
		if c.body != nil {
			b.SetBody(c.body)
			break
		}
	}
	m.commands = append(m.commands[:0], m.commands[n:]...)
	return b
}

// Propose asks the member to replicate a command, with a body unless that is nil; done is
// called once, unless the member stops before.
func (m *Member) Propose(bytes, body []byte, done replica.Done) {
	m.whenAwake(func() {
		m.commands = append(m.commands, pendingCommand{bytes, body, done})
		m.flush()
	})
}

// Read calls done when the member's state includes everything acknowledged before the
// call, or with false when that cannot be had.
func (m *Member) Read(done func(ok bool)) {
	m.whenAwake(func() {
		m.context++
		m.asked = append(m.asked, pendingRead{context: m.context, done: done})
		m.inst.Read(m.clock(), m.context, &m.out)
		m.flush()
	})
}

func (m *Member) answerReads() {
	for _, p := range m.out.Reads {
		if r, ok := m.takeAsked(p.Context); ok {
			r.index = p.Index
			m.waiting = append(m.waiting, r)
		}
	}
	failed := append([]uint64(nil), m.out.FailedReads...)
	for _, c := range failed {
		if r, ok := m.takeAsked(c); ok {
			r.done(false)
		}
	}
	m.serveReads()
}

func (m *Member) takeAsked(context uint64) (r pendingRead, ok bool) {
	for i := range m.asked {
		if m.asked[i].context == context {
			r = m.asked[i]
			m.asked = append(m.asked[:i], m.asked[i+1:]...)
			return r, true
		}
	}
	return r, false
}

// serveReads answers reads whose read point is applied.
func (m *Member) serveReads() {
	index := m.applier.Cursor().Points[0].Index
	var ready []pendingRead
	keep := m.waiting[:0]
	for _, r := range m.waiting {
		if r.index <= index {
			ready = append(ready, r)
		} else {
			keep = append(keep, r)
		}
	}
	m.waiting = keep
	for _, r := range ready {
		r.done(true)
	}
}

// Change asks for a membership change; done is called only if it is refused.
func (m *Member) Change(changes []protocol.Change, done func(error)) {
	m.whenAwake(func() {
		m.context++
		m.changes = append(m.changes, pendingChange{m.context, done})
		m.step(protocol.ProposeChange{Context: m.context, Changes: changes})
	})
}

func (m *Member) refuse() {
	for _, r := range m.out.Refused {
		for i := range m.changes {
			if m.changes[i].context == r.Context {
				m.changes[i].done(&replica.RefusedError{What: "membership change", Reason: r.Reason, Leader: r.Leader})
				m.changes = append(m.changes[:i], m.changes[i+1:]...)
				break
			}
		}
	}
}

// persist hands records to the disk; a sync that runs is waited for.
func (m *Member) persist() {
	if m.out.Seq == m.submitted {
		return
	}
	m.records = append(m.records, m.out.Persist...)
	m.submitted = m.out.Seq
	if m.oldest == 0 {
		m.oldest = m.clock()
	}
	m.write()
}

// write puts everything that gathered into the log with one sync. Bodies are durable
// before the log has the entries that name them: see wal.Writer.
func (m *Member) write() {
	if m.syncing {
		return
	}
	m.syncing = true
	records, seq := m.records, m.submitted
	m.records, m.body.writing, m.body.repaired = nil, m.body.repaired, nil
	m.batch++
	j := job{records: records, seq: seq, noting: m.noting, cut: m.cut}
	m.cut = 0
	m.w.mix(uint64(len(records)), seq)
	if err := m.body.store.AppendOf(records); err != nil {
		m.fail(err)
		return
	}
	durable := func() {
		if err := m.body.store.Sync(); err != nil { // also what was moved to save room
			m.fail(err)
			return
		}
		m.writeLog(j)
	}
	if slices.ContainsFunc(records, func(r wal.Record) bool { return r.Body != nil }) {
		m.whenSynced(m.syncTime(), durable)
	} else {
		durable()
	}
}

// job is what one write makes durable.
type job struct {
	records []wal.Record
	seq     uint64         // of the last step in it
	cut     protocol.Index // the log may be cut here, after the records; 0: no
	noting  protocol.Index // the commit index in it
}

func (m *Member) writeLog(j job) {
	err := m.log.Append(j.records)
	if err == nil && j.cut > 0 {
		err = m.log.Compact(uint32(instance), uint64(j.cut))
	}
	if err != nil {
		m.fail(err)
		return
	}
	m.whenSynced(m.syncTime(), func() { m.wrote(j) })
}

// whenSynced runs do when a sync that takes so long is done, which a disk that stands still
// puts off.
func (m *Member) whenSynced(d time.Duration, do func()) {
	m.later(d, func() {
		if m.stalled > m.w.now {
			m.whenSynced(m.w.set.Heartbeat, do)
			return
		}
		do()
	})
}

// syncTime is how long a sync that begins now takes.
func (m *Member) syncTime() time.Duration {
	s := &m.w.set
	d := m.w.between(s.SyncMin, s.SyncMax)
	if m.slow && !m.w.calm {
		d *= 20
	}
	return d
}

func (m *Member) wrote(j job) {
	if err := m.log.Sync(); err != nil {
		m.fail(err)
		return
	}
	m.body.store.Settle()
	m.body.store.Settle()
	if _, err := m.body.store.Compact(); err != nil {
		m.fail(err)
		return
	}
	if m.w.tracing() {
		m.w.tracef("%s   durable up to step %d", m.id, j.seq)
	}
	m.w.violate(m.id, m.w.ledger.Durable(uint64(m.id), j.seq))
	m.w.bodies.Durable(uint64(m.id), m.batch)
	m.noted = max(m.noted, j.noting)
	m.syncing = false
	m.oldest = 0
	m.storedBodies()
	if m.submitted != j.seq || m.cut > 0 || len(m.records) > 0 {
		m.oldest = m.clock()
		m.write()
	}
	m.step(protocol.Persisted{Seq: j.seq})
}

// apply works through what was committed: at once, or after a while where the seed says
// that applying is slow.
func (m *Member) apply() {
	if m.applying || len(m.queue) == 0 {
		return
	}
	if d := m.w.between(0, m.w.set.ApplyMax); d > 0 {
		m.applying = true
		m.later(d, func() { m.applying = false; m.applyNow(); m.flush() })
		return
	}
	m.applyNow()
}

func (m *Member) applyNow() {
	for len(m.queue) > 0 {
		it := m.queue[0]
		m.queue = m.queue[1:]
		var err error
		if it.install != nil {
			err = m.install(*it.install)
		} else {
			err = m.applyCommitment(it.commit)
		}
		if err != nil {
			m.fail(err)
			return
		}
	}
	m.serveReads()
	m.maybeSnapshot()
}

func (m *Member) applyCommitment(c replica.Commitment) error {
	for i := range c.Entries {
		m.logged += c.Entries[i].Bytes()
	}
	if err := m.applier.Apply(c); err != nil {
		return err
	}
	m.unused(c.Entries)
	return m.applier.Check()
}

// start begins a new life from what is on the disk, as replica.Open does.
func (m *Member) start() error {
	m.life++
	session, _, err := replica.Enter(m.disk, dataDir, cluster, m.id)
	if err != nil {
		return err
	}
	r := &running{session: session, machine: newMachine(m)}
	meta, skip, err := m.restore(r)
	if err != nil {
		return err
	}
	r.log, err = wal.Open(wal.Options{FS: m.disk, Dir: logDir, SegmentBytes: m.w.set.SegmentBytes, Identity: []byte{byte(m.id)}})
	if err != nil {
		return err
	}
	rec, err := replica.Recover(r.log, instance, meta)
	if err != nil {
		return err
	}
	if err := m.w.ledger.Start(uint64(m.id), foundRecords(&rec)); err != nil {
		return err
	}
	if err := m.openBodies(r, &rec); err != nil {
		return err
	}
	r.noted = rec.State.Commit
	core, err := m.w.set.newCore(m.id, rec)
	if err != nil {
		return err
	}
	r.witness = newWitness(m, core)
	m.running, m.up = r, true
	m.w.events.Starts++
	m.build(meta, skip)
	m.later(m.w.between(0, m.w.set.Tick), m.tick)
	return nil
}

// build puts the pure parts of the replica together.
func (m *Member) build(meta replica.Meta, skip protocol.Position) {
	s := &m.w.set
	m.inst = replica.NewInstance(replica.InstanceConfig{
		Self: m.id, Instance: instance, Session: m.session,
		RetryAfter: s.Election, GiveUp: s.GiveUp, Depth: s.Depth,
		MutantReleaseEarly: s.Mutant == MutantReleaseEarly,
	}, m.witness)
	m.previous = meta.Base(instance).Index
	if s.Mutant == MutantForgetSessions {
		meta.Sessions = nil
	}
	m.applier = replica.NewApplier(m.machine.asStateMachine(), meta, m.session, skip, replica.LoadFrom(m.log))
	m.applier.MutantNoSessions = s.Mutant == MutantNoSessions
	m.applier.Given = m.body.retention.Given
	m.follow()
	m.tell()
	if s.Bodies.Scrub > 0 {
		m.later(m.w.between(0, s.Bodies.Scrub), m.scrub)
	}
}
