package sim

import (
	"cmp"
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/member/damage"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/lifecycle"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// identities draws the identities of logs and the marks of incarnations.
var identities = draw.New("identities")

var (
	readsGrouped          = count.New("reads_answered_together", "groups of reads")
	writesOverloaded      = count.New("writes_that_found_no_room", "writes without room")
	memberStarts          = count.New("starts", "starts")
	memberCrashes         = count.New("crashes", "crashes")
	powerLostWhileWriting = count.New("power_lost_while_writing", "half writes")
	failedSyncs           = count.New("failed_syncs", "dead disks")
	frozenInTurns         = count.New("frozen_in_a_turn", "frozen in a turn")
	stoppedWithoutDisk    = count.New("members_stopped_that_lost_their_disk", "members stopped that lost their disk")
	damagedSnapshotsFound = count.New("damaged_snapshots_found", "damaged snapshots found")
)

// firstInstance is the protocol instance that every simulated member hosts.
const firstInstance protocol.InstanceID = 1

// clusterID is the simulated cluster's id.
const clusterID = 1

// Member is one process of the simulated cluster, and its disk. It does what the event loops of
// production do around the pure parts of package member, on virtual time.
type Member struct {
	w    *environment
	id   protocol.MemberID
	disk *device.Disk
	// own are the member's settings: those of the run, or its own where members are unequal.
	own *Settings
	// saved is the disk of a state machine that keeps its own state. It has what the state machine
	// made durable, or more.
	saved *machine.State
	short shortage // of space on the disk
	// astray is by how much the state machine of this life is ahead of what the log has; usually 0.
	astray protocol.Position
	// cellBytes is the most that the cells in its log took at any tick so far.
	cellBytes int64
	join      bool // not part of the first configuration
	// given are the members of which it is told when it starts for the first time.
	given []protocol.Member
	// url is where it listens. told: it is to be told where all members are.
	url  string
	told bool

	up       bool
	gone     bool // removed and stopped for good
	retiring bool // removed, and soon gone
	life     int  // changes with each start and stop; callbacks of another life do nothing

	// strangers is how often the member got another disk. restored says whether that is an old
	// copy. lives is how many lives began on the disk.
	strangers int
	apart     *smallWorld // set: it was founded apart, and lives in a world of its own
	misled    bool        // it joined another cluster of the same members
	odd       bool        // it began without the state with which the cluster began
	restored  bool
	doubt     *doubt // set: on a hot copy, it has not yet heard who knows what it lacks
	lives     uint64
	backup    *backup
	// between is the most that the member applied between two snapshots of a life.
	between int64

	// The clock: local time is offset + rate·global time.
	offset time.Duration
	rate   float64
	// paused is until when the process stands still. stalled is until when its disk does. sluggish is until when
	// a sync may last that began while the disk was slow.
	paused, stalled, sluggish time.Duration
	// delayed is until when something waits that was to happen while the process stood still. It waits
	// until then also if the process goes on before.
	delayed time.Duration
	// lagging is until when the member applies nothing. away: it is down or cut off until a leader
	// has cut entries that it lacks.
	lagging time.Duration
	away    bool
	slow    bool
	late    bool // its disk is slower than others, while nothing fails
	// frozen: the process stands still in the middle of a turn of all its instances, until paused.
	// What clients ask in that time becomes part of those turns.
	frozen bool

	*running // of the present life, or the last one
	started  bool
}

// running is what a crash loses.
type running struct {
	// inForce are the instances in force, in ascending order. The first one, whose membership is
	// the cluster's, is embedded too, because it is often the only one.
	inForce []*memberInstance
	*memberInstance
	crew     *crew // instances, as they know each other
	began    time.Duration
	weaver   instance.Weaver
	dir      *datadir.Opened
	log      *wal.Log
	writer   *writer
	snaps    *datadir.Snapshots
	applier  *apply.Applier
	machines machine.Set
	body     bodyWork
	session  protocol.Session

	who        protocol.Who
	handshakes cluster.Handshakes
	silent     bool // a member without a log: it does not take part yet
	links      *cluster.Links
	// dials are the members that it dials where they are.
	dials map[protocol.MemberID]bool

	drops []droppedBody

	// instances decides which instances there are. retired are those that are no longer in force and
	// stay for a while.
	instances *lifecycle.Instances[*memberInstance]
	retired   []*memberInstance

	// proposals are batches that wait for an instance. favorite is the instance for the next batch;
	// 0: any.
	proposals intake.Proposals
	favorite  protocol.InstanceID
	inbox     int // bytes of messages that wait for turns

	gathering  [2]*readers // the groups that new readers join: plain ones, and barriers
	operations cluster.Executions
	executing  []*cluster.Execution // of operators

	greeted   time.Duration // when the member last made handshakes
	condemned error         // why the member stops as soon as the turn ends

	applying
	// snapshots
	snapped order.Cursor // the newest that is durable, also if others sent it and Apply has not seen it
	cutAt   int64        // how much had been applied in this life when the newest snapshot was written
	health  damage.DiskHealth
	scrub   *damage.Scrub // nil: nothing is scrubbed
}

// readers is a group of reads that are answered together.
type readers struct {
	intake.ReadGroup
	list []reader
}

type reader struct {
	// floor is how far the global log had been applied by any member when the client asked.
	floor order.Slot
	// accepted is what had been accepted then; nil: the client does not want to see all of it.
	accepted *history.AcceptedWrites
	done     func(ok bool)
}

func newMember(w *environment, id protocol.MemberID) *Member {
	return &Member{w: w, id: id, own: w.settingsOf(id), disk: device.NewDisk(), rate: 1, url: home(id)}
}

// clock is the time by the member's own clock.
func (m *Member) clock() time.Duration {
	return m.offset + time.Duration(float64(m.w.Now())*m.rate)
}

// fail stops the member: its disk failed, or it found something that must not be.
func (m *Member) fail(err error) {
	m.w.Tracef("%s stops: %v", m.id, err)
	m.w.observer.failed(m, err)
	m.crash()
}

// crash stops the process as a loss of power does: what was not synced may be lost.
func (m *Member) crash() {
	if !m.up {
		return
	}
	m.up = false
	m.w.Count(memberCrashes)
	m.life++ // the rest of this step then finds the member down
	m.disk = m.disk.Crash(m.w.Rand)
	if m.machines.First.Durable() && m.w.Chance(0.5) {
		m.saved = m.machines.First.Freeze() // its own transactions may be further than the last Sync
	}
	m.paused, m.stalled, m.sluggish, m.delayed, m.lagging = 0, 0, 0, 0, 0
	m.frozen = false
}

// later runs do after d, unless the process stops before. If the process is paused, do runs when
// the process goes on.
func (m *Member) later(d time.Duration, do func()) {
	life := m.life
	m.w.After(d, func() {
		if m.up && m.life == life {
			m.whenAwake(do)
		}
	})
}

func (m *Member) whenAwake(do func()) {
	if m.paused > m.w.Now() {
		m.delayed = max(m.delayed, m.paused)
		m.later(m.paused-m.w.Now(), do)
		return
	}
	do()
}

// still is until when the process stands still, or something waits because it did.
func (m *Member) still() time.Duration { return max(m.paused, m.delayed) }

// admit runs what a client asks for, as soon as the process can take it in.
func (m *Member) admit(do func()) {
	if m.frozen {
		do()
		return
	}
	m.whenAwake(do)
}

func (m *Member) tick() {
	if m.w.Tracing() && m.w.Out.Ticks {
		m.w.Tracef("%s tick", m.id)
	}
	for _, s := range m.hosted() {
		s.tick = !m.silent
		s.wake()
	}
	m.tickBodies()
	if !m.up {
		return
	}
	m.w.observer.ticked(m)
	m.greet()
	m.tickLater(time.Duration(float64(m.own.Tick) / m.rate))
}

// receive takes a frame from a link. It must reject a damaged frame and accept any other.
func (m *Member) receive(from *Member, life int, frame []byte, damaged bool) {
	if !m.up {
		return
	}
	if m.paused > m.w.Now() {
		m.delayed = max(m.delayed, m.paused)
		m.later(m.paused-m.w.Now(), func() { m.receive(from, life, frame, damaged) })
		return
	}
	if !m.w.linked(from, life, m) || !m.up {
		return
	}
	msg, err := protocol.DecodeMessage(frame, m.w.set.codec())
	if damaged != (err != nil) {
		m.w.Violate(m.id, fmt.Errorf("frame damaged: %t, decodes: %v", damaged, err))
	}
	if err != nil {
		return
	}
	if m.w.Tracing() {
		m.w.Tracef("%s ← %s %s", m.id, msg.From, m.w.describe(msg))
	}
	if !m.hears(msg) || m.fetched(msg) {
		return
	}
	s := m.of(msg.Instance)
	if s == nil {
		s, _ = m.instances.Receive(msg, len(frame))
		m.w.Violate(m.id, m.instances.Check())
	}
	if s != nil {
		s.message(msg, len(frame))
	}
}

// of returns the member's part of an instance, or nil if it has none.
func (m *Member) of(instance protocol.InstanceID) *memberInstance {
	for _, s := range m.inForce {
		if s.instance == instance {
			return s
		}
	}
	return m.among(m.retired, instance)
}

// Propose asks the member to replicate the command of an operation, with its body if it has one, and with
// options unless these are nil. to is where it puts the command. done is called once, unless the member stops before that.
func (m *Member) Propose(to commands, bytes []byte, op *history.Operation, o *protocol.ProposeOptions, done intake.Done) {
	body := op.Body
	m.admit(func() {
		if m.w.set.Shortage > 0 && m.refuses() {
			done(nil, errLowDisk)
			return
		}
		fresh, err := false, m.proposals.Fits(bytes, body)
		switch {
		case err != nil:
		case body != nil:
			b := intake.NewBodyBatch(bytes, body, done)
			if o != nil {
				err = m.proposals.SetOptions(b, o)
			}
			if err == nil {
				fresh, err = to.AddBody(m.clock, b)
			}
		case o != nil:
			fresh, err = to.AddWith(m.clock, bytes, o, done)
		default:
			fresh, err = to.Add(m.clock, bytes, done)
		}
		if err != nil {
			m.w.Count(writesOverloaded)
			done(nil, err)
			return
		}
		if op.Ticket = m.proposals.Last(); fresh {
			m.wakeTakers()
		}
	})
}

// wakeTakers wakes the instances that may take the next batch.
func (m *Member) wakeTakers() {
	instance.WakeTakers(m.crew, m.w.set.Keyed, 0, func(i int) { m.inForce[i].wake() })
}

// Read calls done with true when the member's state includes everything that was acknowledged
// before the call, or with false when that fails. It asks all instances for read points. What was
// applied anywhere before the call ends before the first slot that is not filled up to these points
// (docs/internals/niagara.md, 3.3). With barrier the state also includes what was accepted before the call.
func (m *Member) Read(barrier bool, done func(ok bool)) {
	r := reader{floor: m.w.court.Executed, done: done}
	kind := 0
	if barrier {
		kind, r.accepted = 1, m.w.history.Accepted()
	}
	m.admit(func() {
		first := m.inForce[0]
		if !first.reads.Gathering(barrier) {
			m.gathering[kind] = m.newReaders(barrier)
			first.reads.Gather(&m.gathering[kind].ReadGroup)
			first.wake()
		}
		m.gathering[kind].list = append(m.gathering[kind].list, r)
	})
}

func (m *Member) newReaders(barrier bool) *readers {
	g := &readers{}
	g.Barrier = barrier
	g.Done = func(err error) {
		m.w.Events.Add(readsGrouped, min(1, len(g.list)-1))
		for i := range g.list {
			if r := &g.list[i]; m.up {
				if err == nil {
					m.judgeRead(r)
					m.judgeBarrier(r)
				}
				r.done(err == nil)
			}
		}
	}
	return g
}

// readDone lets the next group of reads begin.
func (m *Member) readDone() {
	if len(m.inForce) > 1 {
		m.inForce[0].wake()
	}
}

// syncTime is how long a sync takes that begins now.
func (m *Member) syncTime() time.Duration {
	s := &m.w.set
	d := m.w.Between(s.SyncMin, s.SyncMax)
	if m.slow && !m.w.calm {
		d *= 20
		m.sluggish = max(m.sluggish, m.w.Now()+d)
	}
	if m.late {
		d *= late
	}
	return d
}

// start begins a new life from what is on the disk, as replica.Open does.
func (m *Member) start() error {
	m.life++
	m.goesAstray()
	machines, err := m.stateMachines()
	if err != nil {
		return err
	}
	config := m.directory(machines.All)
	refused := m.checkDirectory(&config)
	dir, err := datadir.Open(config)
	if err != nil {
		return err
	}
	if refused != nil {
		return fmt.Errorf("what was refused before is opened: %w", refused)
	}
	if err := m.keptBallast(dir.Ballast); err != nil {
		return err
	}
	m.lives = dir.Own.Life
	r := &running{began: m.w.Now(), machines: machines, dir: dir, log: dir.Log, snaps: dir.Snapshots, session: dir.Session()}
	dir.Register.Mutant = m.w.set.mutant()
	r.who, r.handshakes = dir.Own.Who(), cluster.NewHandshakes(dir.Register, dir.Birth, handshakeWorld{m, dir})
	r.handshakes.Mutant = m.w.set.mutant()
	if err := dir.Register.Descends(dir.Meta.Config.Lineage); err != nil {
		return err
	}
	if m.given == nil {
		m.given = m.w.given(m)
	}
	r.links = cluster.NewLinks(m.id, m.own.Election, m.given)
	r.links.Mutant = m.w.set.mutant()
	if err := m.open(r, dir); err != nil {
		return err
	}
	m.running, m.up = r, true
	m.w.Count(memberStarts)
	m.build(dir.Meta, dir.Skip)
	if m.relink(); !m.up {
		return nil
	}
	at := m.applier.Cursor()
	if why := instance.Expelled(&at, m.statuses()); why != nil {
		m.w.observer.expelled(m, why)
		return nil
	}
	m.hear()
	m.tickLater(m.w.Between(0, m.own.Tick))
	return nil
}

// directory says what is opened of the member's disk.
func (m *Member) directory(sm member.StateMachine) datadir.Config {
	first := m.w.set.firstConfig()
	if m.join {
		first.Members = nil
	}
	core := m.w.set.protocol.Core
	begin := m.w.set.begin()
	kind := member.LogKind{Core: core.Name, Order: begin.Kind()}
	if m.id%2 == 1 && !m.started && core.Begins == 0 && !m.w.set.Noted {
		// An earlier version does not note it, and later lives find it out. Where that rests on an entry of the first
		// leader, a crash just before it leaves a log that another core may have written.
		kind = member.LogKind{}
	}
	m.started = true
	return datadir.Config{
		Kind: kind, Guess: func() member.KindGuess { return registry.NewGuess() },
		FS: m.disk, Dir: device.Root, Cluster: clusterID, Self: m.id, Chance: m.w.From(identities).Rand.Uint64, Begin: begin, Members: first.Members, Join: m.join, Machine: sm,
		Identity: []byte{byte(m.id)}, Cells: core.Cells, Derive: m.w.set.derive(), Epochs: m.w.set.epochsTold(), Quorums: m.w.set.quorums.String(), LogSegment: m.own.SegmentBytes, BodySegment: m.w.set.Bodies.SegmentBytes,
	}
}

// logOptions are the options with which the member's log is opened.
func (m *Member) logOptions(d *device.Disk, meta *member.Meta) wal.Options {
	return wal.Options{FS: d, Dir: logDir, SegmentBytes: m.own.SegmentBytes, Identity: []byte{byte(m.id)}, Cover: lifecycle.CoverOf(meta, m.w.set.protocol.Core.Cells != nil)}
}

// settled frees what a batch takes of the limit on proposals.
func (r *running) settled(b *intake.Batch) { r.proposals.Settled(b) }

// build puts the parts of the member together.
func (m *Member) build(meta member.Meta, skip protocol.Position) {
	m.writer = newWriter(m, m.log, m.body.store)
	s := m.own
	m.snapped = meta.Cursor
	if m.beginApplying(meta, skip); m.sick() {
		m.checkState()
	}
	m.proposals = intake.Proposals{MaxBatch: s.BatchBytes, MaxCount: s.BatchCommands, MaxBytes: cmp.Or(s.PendingBytes, 1<<30), Proposing: m.w.set.protocol.Core.Proposing, Mutant: s.mutant()}
	m.operations.Config = member.OperationConfig{Self: m.id, Heartbeat: s.Heartbeat, Election: s.Election, GiveUp: s.GiveUp, Leaders: s.Core.Leaders, Mutant: s.mutant()}
	if m.w.set.Keyed {
		m.proposals.SetGroups(meta.Cursor.Instances())
	}
	m.proposals.Free = m.running.settled
	m.proposals.Held = m.look
	m.body.kept.NotifyAll()
	m.health.Passed(m.snaps.Damaged, m.log.Damaged())
	m.w.Events.Add(damagedSnapshotsFound, len(m.snaps.Damaged))
	if s.Bodies.Scrub > 0 {
		m.scrubLater(s.Bodies.Scrub)
	} else if s.Faults[faultRot] > 0 {
		m.scrubLater(4 * s.Election)
	}
}
