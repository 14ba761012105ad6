package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/order"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/replica"
	"github.com/braidlog/braid/wal"
)

// firstInstance is the protocol instance that every simulated member hosts.
const firstInstance protocol.InstanceID = 1

// cluster is the simulated cluster's id.
const cluster = 1

// Member is one process of the simulated cluster and its disk. It does what the
// production event loops do around the pure parts of package replica, on virtual time.
type Member struct {
	w    *World
	id   protocol.MemberID
	disk *disk
	// own are the run's settings, or where members are unequal this member's.
	own *Settings
	// saved is the disk of a state machine that keeps its own state: what it has made
	// durable, or more.
	saved *frozen
	join  bool // not part of the first configuration

	up       bool
	gone     bool // removed and stopped for good
	retiring bool // removed, and soon gone
	life     int  // how often it stopped; callbacks of an earlier life do nothing

	// strangers is how often its disk was lost or replaced by an old copy, restored whether
	// it was the latter. lives is how many began on the disk.
	strangers int
	restored  bool
	lives     uint64
	backup    *backup

	// The clock: local time is offset + rate·global time.
	offset time.Duration
	rate   float64
	// paused is until when the process stands still; slow and stalled are about its disk.
	paused, stalled time.Duration
	// lagging is until when nothing is applied. away: it is down or cut off until the others have
	// cut their logs.
	lagging time.Duration
	away    bool
	slow    bool
	// turn is the clock as the event loop reads it.
	turn member.Clock
	// frozen: the process stands still in the middle of a turn, until paused. What clients ask
	// meanwhile waits in late and is part of that turn.
	frozen bool
	late   []func()

	*running // of the present life, or the last one
}

// running is what a crash loses.
type running struct {
	// strands are the instances, ascending. The first, whose membership is the cluster's, is
	// also at hand as if it were the only one, which it often is.
	strands []*strand
	*strand
	weaver  member.Weaver
	log     *wal.Log
	writer  *writer
	snaps   *replica.Snapshots
	applier *member.Applier
	machine *machine
	body    bodyWork
	session protocol.Session

	register  *member.Register
	published time.Duration // when it was last looked whose logs the membership does not name

	drops []droppedBody

	// retired are instances that are not in force any more; unborn is what the log has of
	// those that are not yet; again are batches that took no effect in a retired one.
	retired []*strand
	unborn  map[protocol.InstanceID]*member.Unborn
	again   []*member.Batch

	// proposals that wait for room, and reads
	commands []pendingCommand
	context  uint64
	changes  []pendingChange

	// departure finds out that the cluster goes on without the member; greeted is when it last
	// made the handshake with others.
	departure member.Departure
	greeted   time.Duration

	applying
	// snapshots
	intake   member.Intake  // of those from others
	streams  member.Streams // on their way to others
	snapped  order.Cursor   // the newest that is durable, also if it was received
	scrubber *wal.Scrubber
	book     member.DamageBook // what scrubbing found
}

type pendingCommand struct {
	bytes, body []byte
	done        member.Done
}

// pendingRead is a read that waits for read points of all instances, and then for the state
// to include them.
type pendingRead struct {
	member.ReadGroup
	// floor is how much of the global log had been executed somewhere when it was asked for.
	floor order.Slot
}

type pendingChange struct {
	context uint64
	done    func(error)
}

func newMember(w *World, id protocol.MemberID) *Member {
	m := &Member{w: w, id: id, own: w.settingsOf(id), disk: newDisk(), rate: 1}
	m.turn = member.Clock{Read: m.clock, Mutant: w.set.mutant()}
	return m
}

// clock is the member's own idea of time.
func (m *Member) clock() time.Duration {
	return m.offset + time.Duration(float64(m.w.now)*m.rate)
}

// fail stops the member: its disk failed, or it found something that cannot be.
func (m *Member) fail(err error) {
	m.w.tracef("%s stops: %v", m.id, err)
	switch {
	case errors.Is(err, errIO):
		m.w.events.IOErrors++
		m.w.startLater(m, m.w.between(0, 6*m.w.set.Election))
	case errors.Is(err, errPower):
		m.w.events.HalfWrites++
		m.w.startLater(m, m.w.between(0, 6*m.w.set.Election))
	case m.strange() && errors.As(err, new(*member.ForgottenError)):
		m.w.events.Forgotten++
		if m.w.lossy.yes(0.5) { // whoever watches over processes starts it again
			m.w.startLater(m, m.w.set.Election)
		}
	case errors.Is(err, errSync):
		m.w.events.DeadDisks++
		m.w.startLater(m, m.w.between(m.w.set.Election, 6*m.w.set.Election))
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
	m.paused, m.stalled, m.lagging = 0, 0, 0
	m.frozen, m.late = false, nil
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
	m.turn.Begin()
	do()
}

// freeze lets the process stand still in the middle of a turn that has just begun.
func (m *Member) freeze(d time.Duration) {
	if m.frozen || m.paused > m.w.now {
		return
	}
	m.turn.Begin()
	m.frozen, m.paused = true, m.w.now+d
	m.w.events.Frozen++
	m.thawLater()
}

func (m *Member) thawLater() {
	life := m.life
	m.w.after(m.paused-m.w.now, func() {
		switch {
		case !m.up || m.life != life || !m.frozen:
		case m.paused > m.w.now: // longer than was planned
			m.thawLater()
		default:
			m.thaw()
		}
	})
}

// thaw lets the turn go on: what clients asked meanwhile comes into it.
func (m *Member) thaw() {
	late := m.late
	m.frozen, m.late = false, nil
	for _, do := range late {
		if m.up {
			do()
		}
	}
	m.flush()
}

// admit runs what a client asks for, when the event loop lets that in.
func (m *Member) admit(do func()) {
	if m.frozen {
		m.late = append(m.late, do)
		return
	}
	m.whenAwake(do)
}

func (m *Member) tick() {
	if m.w.tracing() && m.w.out.ticks {
		m.w.tracef("%s tick", m.id)
	}
	for _, s := range m.hosted() {
		s.inst.Step(m.turn.Now(), protocol.Tick{Random: m.w.rng.Uint64()}, &s.out)
		s.ticked = true
	}
	m.tickWeave()
	m.noteLogs()
	m.flush()
	if m.up {
		m.tickBodies()
	}
	if !m.up {
		return
	}
	m.w.judgeMember(m)
	if m.depart(); !m.up {
		return
	}
	m.tickLater(time.Duration(float64(m.own.Tick) / m.rate))
}

// receive takes a frame from a link. A damaged one must be noticed, a whole one accepted.
func (m *Member) receive(from *Member, life int, frame []byte, damaged bool) {
	if !m.up {
		return
	}
	if m.paused > m.w.now {
		m.later(m.paused-m.w.now, func() { m.receive(from, life, frame, damaged) })
		return
	}
	if !m.w.linked(from, life, m) || !m.up {
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
	m.turn.Begin()
	if m.fetched(msg) {
		return
	}
	if s := m.of(msg.Instance); s != nil {
		s.step(msg)
	}
}

// of returns the member's part of an instance; nil if it has none.
func (m *Member) of(instance protocol.InstanceID) *strand {
	for _, s := range m.strands {
		if s.instance == instance {
			return s
		}
	}
	return m.among(m.retired, instance)
}

// flush carries out the outboxes, until there is nothing in any.
func (m *Member) flush() {
	if !m.up {
		return
	}
	m.propose()
	for m.up {
		m.suspect()
		hosted := m.hosted()
		i := slices.IndexFunc(hosted, (*strand).busy)
		if i < 0 {
			return
		}
		hosted[i].carryOut()
		hosted[i].spin()
	}
}

// propose hands waiting commands to instances while there is room for a batch.
func (m *Member) propose() {
	for len(m.again) > 0 {
		s, _ := m.room(0, true)
		if s == nil {
			return
		}
		b := m.again[0]
		m.again = m.again[1:]
		s.inst.Propose(m.turn.Now(), b, &s.out)
	}
	for len(m.commands) > 0 {
		first := &m.commands[0]
		s, wait := m.room(len(first.bytes)+len(first.body), len(m.commands) >= m.own.BatchCommands || first.body != nil)
		if s == nil {
			if wait > 0 {
				m.later(wait, m.flush)
			}
			return
		}
		s.inst.Propose(m.turn.Now(), m.nextBatch(), &s.out)
	}
}

// nextBatch takes the commands of one entry. One with a body stands alone.
func (m *Member) nextBatch() *member.Batch {
	b := member.NewBatch(m.turn.Now(), 64, 1)
	size, n := 0, 0
	for n < len(m.commands) && n < m.own.BatchCommands && (n == 0 || size+len(m.commands[n].bytes) <= m.own.BatchBytes) {
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
func (m *Member) Propose(bytes, body []byte, done member.Done) {
	m.admit(func() {
		m.commands = append(m.commands, pendingCommand{bytes, body, done})
		m.flush()
	})
}

// Read calls done when the member's state includes everything acknowledged before the
// call, or with false when that cannot be had. It asks all instances for read points: what
// was executed anywhere before the call is a prefix that ends before the first slot that is
// not filled up to these points (docs/niagara.md, 3.3).
func (m *Member) Read(done func(ok bool)) {
	r := &pendingRead{floor: m.w.executed}
	r.Done = func(err error) {
		if err == nil {
			m.judgeRead(r)
		}
		done(err == nil)
	}
	m.admit(func() {
		m.ask(&r.ReadGroup)
		m.flush()
	})
}

// ask asks all instances for a read point.
func (m *Member) ask(g *member.ReadGroup) {
	if !m.progress.Ask(g, m.shape()) {
		return
	}
	m.context++
	for _, s := range m.strands {
		s.groups[m.context] = g
		s.inst.Read(m.turn.Now(), m.context, &s.out)
	}
}

// Change asks for a membership change; done is called only if it is refused.
func (m *Member) Change(changes []protocol.Change, done func(error)) {
	m.whenAwake(func() {
		if !m.settled() || !m.w.sane(m, changes) {
			done(&member.RefusedError{What: "membership change", Reason: protocol.ReasonChangePending, Leader: m.witness.status.Leader})
			return
		}
		m.context++
		m.changes = append(m.changes, pendingChange{m.context, done})
		m.step(protocol.ProposeChange{Context: m.context, Changes: changes})
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

// start begins a new life from what is on the disk, as replica.Open does.
func (m *Member) start() error {
	m.life++
	own, _, err := replica.Enter(m.disk, dataDir, cluster, m.id, m.w.births.Uint64)
	if err != nil {
		return err
	}
	m.lives = own.Life
	r := &running{session: own.Session(), machine: newMachine(m)}
	if r.register, err = replica.LoadRegister(m.disk, dataDir, own); err != nil {
		return err
	}
	r.register.Mutant = m.w.set.mutant()
	meta, skip, err := m.restore(r)
	if err != nil {
		return err
	}
	r.log, err = wal.Open(m.logOptions(m.disk, &meta))
	if err != nil {
		return err
	}
	if err := m.open(r, meta); err != nil {
		return err
	}
	m.running, m.up = r, true
	m.w.events.Starts++
	m.build(meta, skip)
	if m.learn(); !m.up {
		return nil
	}
	if why := member.Expelled(m.statuses()); why != nil {
		m.w.expel(m, why)
		return nil
	}
	m.tickLater(m.w.between(0, m.own.Tick))
	return nil
}

// logOptions are what the member's log is opened with.
func (m *Member) logOptions(d *disk, meta *member.Meta) wal.Options {
	return wal.Options{FS: d, Dir: logDir, SegmentBytes: m.own.SegmentBytes, Identity: []byte{byte(m.id)}, Cover: member.CoverOf(meta)}
}

// build puts the pure parts of the replica together.
func (m *Member) build(meta member.Meta, skip protocol.Position) {
	m.writer = newWriter(m, m.log, m.body.store)
	s := m.own
	m.snapped = meta.Cursor
	if m.beginApplying(meta, skip); m.sick() {
		m.checkState()
	}
	m.departure.Mutant = s.mutant()
	m.followMembers()
	m.body.kept.TellAll()
	if s.Bodies.Scrub > 0 {
		m.later(m.w.between(0, s.Bodies.Scrub), m.scrub)
	}
	if s.Faults[faultRot] > 0 {
		m.later(m.w.between(0, 4*s.Election), m.scrubDisk)
	}
}
