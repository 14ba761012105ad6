package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/member/damage"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/lifecycle"
	"github.com/braidlog/braid/internal/order"
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
	own *nodeSettings
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
	apart     bool // it was founded apart, and lives in a world of its own
	misled    bool // it joined another cluster of the same members
	odd       bool // it began without the state with which the cluster began
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

func newMember(w *environment, id protocol.MemberID) *Member {
	return &Member{w: w, id: id, own: w.settingsOf(id), disk: device.NewDisk(), rate: 1, url: home(id)}
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

// syncTime is how long a sync takes that begins now.
func (m *Member) syncTime() time.Duration {
	s := m.w.set
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

// settled frees what a batch takes of the limit on proposals.
func (r *running) settled(b *intake.Batch) { r.proposals.Settled(b) }

// leadsAny reports whether the member believes that it leads some instance.
func (m *Member) leadsAny() bool { return slices.ContainsFunc(m.inForce, (*memberInstance).leads) }

// replaced reports whether the member believes that it leads an instance, while another member
// leads a later term of it.
func (m *Member) replaced() bool {
	return slices.ContainsFunc(m.inForce, func(s *memberInstance) bool { return s.leads() && m.w.leaderOf(s.instance) != m })
}

// strange reports whether the member runs on another disk than the one that others know it by.
func (m *Member) strange() bool { return m.strangers > 0 || m.odd }

// judged is the member's number for the judges.
func (m *Member) judged() uint64 {
	n := uint64(m.id) | uint64(m.strangers)<<32
	if m.odd {
		n |= 1 << 48
	}
	return n
}

// reached says how far a member has come, to find the one that knows the latest membership.
func (m *Member) reached() protocol.Position {
	at := m.applier.Cursor()
	if at.Keyed {
		return protocol.Position(at.Points[0].Index)
	}
	return at.Position
}

// sick reports whether the member's state is damaged.
func (m *Member) sick() bool { return m.machines.First.Damage() != nil }

// checkState does what replica.Replica.CheckState does.
func (m *Member) checkState() { m.push(apply.ApplyItem{Halt: true}) }

// stateless reports whether the member does not have the state yet with which the cluster began.
func (m *Member) stateless() bool {
	return m.w.set.Birth != "" && !m.strange() && (m.saved == nil || m.saved.Birth == "")
}

// commands is where clients put commands: a member's proposals, or a client's queue before them.
type commands interface {
	Add(now func() time.Duration, command []byte, done intake.Done) (fresh bool, err error)
	AddWith(now func() time.Duration, command []byte, o *protocol.ProposeOptions, done intake.Done) (fresh bool, err error)
	AddBody(now func() time.Duration, b *intake.Batch) (fresh bool, err error)
}

// withdraw withdraws a command and calls then, if the command has not left the member.
func (m *Member) withdraw(t intake.Ticket, then func()) {
	ok, instance := m.proposals.Withdraw(t)
	if ok {
		then()
		return
	}
	s := m.among(m.hosted(), instance)
	if s == nil || s.ended {
		return
	}
	s.do(func() {
		if s.hosted.Withdraw(t) {
			then()
		}
	})
}

// judgeHeld judges that the member has applied all that the commands of a batch are to follow, where the
// member sees to that and not the core. By what takes effect alone it could not be judged: in some protocols
// what is accepted takes effect before all that is proposed later anyway.
func (m *Member) judgeHeld(b *intake.Batch) {
	if b == nil || len(m.w.history.Tokens) == 0 || m.w.set.protocol.Core.Proposing.Tokens {
		return
	}
	for rest := b.Entry.Payload; len(rest) > 0; {
		command, next, err := protocol.NextCommand(rest)
		if err != nil {
			return
		}
		if rest = next; len(command) == 0 {
			continue
		}
		number, _, err := machine.ParseCommand(command)
		if err != nil {
			continue // nonsense
		}
		m.w.Violate(m.id, m.w.history.ProposedAt(number, m.machines.First.Position()))
	}
}

// applied is the last index of an instance that the state machine has applied.
func (m *Member) applied(instance protocol.InstanceID) protocol.Index {
	cursor, _ := m.progress.At()
	return cursor.Point(instance).Index
}

// backup is a copy of a member's disk, made while it was stopped.
type backup struct {
	disk  *device.Disk
	saved *machine.State
	life  uint64 // the last life that began on it
	// alone: on this disk the member is the only voter. It decides by itself then, and asks nobody who
	// could know better (docs/internals/identity.md).
	alone bool
}

// late is by how many times a slow disk's syncs take longer than those of others.
const late = 10
