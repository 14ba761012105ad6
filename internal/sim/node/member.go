package node

import (
	"fmt"
	"slices"
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
	readsAskedAgain       = count.New("reads_asked_again", "reads for which instances are asked again", count.Merged)
	writesOverloaded      = count.New("writes_that_found_no_room", "writes without room")
	memberStarts          = count.New("starts", "starts")
	memberCrashes         = count.New("crashes", "crashes")
	membersKilled         = count.New("killed", "ended, with a machine that ran on")
	PowerLostWhileWriting = count.New("power_lost_while_writing", "half writes")
	FailedSyncs           = count.New("failed_syncs", "dead disks")
	frozenInTurns         = count.New("frozen_in_a_turn", "frozen in a turn")
	StoppedWithoutDisk    = count.New("members_stopped_that_lost_their_disk", "members stopped that lost their disk")
	damagedSnapshotsFound = count.New("damaged_snapshots_found", "damaged snapshots found")
)

// FirstInstance is the protocol instance that every simulated member hosts.
const FirstInstance protocol.InstanceID = 1

// clusterID is the simulated cluster's id.
const clusterID = 1

// Member is one process of the simulated cluster, and its disk. It replaces the event loops of production around the
// pure parts of package member, on virtual time.
type Member struct {
	process
	drive
	// Own are the member's settings: those of the run, or different ones if members are unequal.
	Own *Settings
	// Saved is the disk of a state machine that keeps its own state. It has everything that the state machine made
	// durable, or more.
	Saved *machine.State
	// Astray is the distance by which the state machine of this incarnation is ahead of the log; usually 0.
	Astray protocol.Position
	// CellBytes is the maximal size of the cells in its log at any tick so far.
	CellBytes int64
	// between is the maximal number of bytes that the member applied between two snapshots of an incarnation.
	between int64
	// Lagging is the time until which the member applies nothing.
	Lagging time.Duration

	// tuning are the settings in use, and tunedTo is the version of their profile.
	tuning  member.Tuning
	tunedTo uint64
	// flags are those of the present start. unnoted: the directory's first incarnation recorded no kind of the log.
	flags   flags
	unnoted bool

	Join bool // not part of the first configuration
	// Zone is the zone with which it joins.
	Zone string
	// Given are the members that the operator names at its first start.
	Given []protocol.Member
	// URL is its address. Told: it must learn the addresses of all members.
	URL  string
	Told bool

	Gone     bool // removed and stopped forever
	Retiring bool // removed, and about to stop
	Away     bool // down or cut off until a leader has cut entries that it needs
	Apart    bool // it was founded separately, and runs in a world of its own
	Misled   bool // it joined another cluster of the same members
	Odd      bool // it began without the cluster's initial state
	started  bool // it was started at least once
	Newest   int  // the newest format that its program knows; 0: the first one

	*Running // of the current incarnation, or the last one
}

// drive is the current disk of a member, with its faults.
type drive struct {
	Disk  *device.Disk
	Short Shortage // of space on the disk
	// Strangers is the number of times that the member got another disk. Restored: it is an old copy.
	Strangers int
	Restored  bool
	// Blank is how many of the disks before had nothing of this log, so that nothing that counts was lost with them.
	Blank  int
	Doubt  *Doubt // set: it runs on a hot copy, without a message yet of the leader that knows the missing entries
	Lives  uint64 // the incarnations that began on the disk
	Backup *Backup
	// Stalled is the end of the disk's stall. Sluggish is the latest end of a sync that began while the disk was slow.
	Stalled, Sluggish time.Duration
	Slow              bool
	Late              bool // it is slower than others, without a failure
}

// Running is the state that a crash loses.
type Running struct {
	// InForce are the active instances, in ascending order. The first one, whose membership is the cluster's, is
	// embedded too, because it is often the only one.
	InForce []*MemberInstance
	*MemberInstance
	Crew     *Crew // the instances, as they see each other
	Began    time.Duration
	weaver   instance.WantedRounds
	dir      *datadir.Opened
	Log      *wal.Log
	Writer   *writer
	Snaps    *datadir.Snapshots
	Applier  *apply.Applier
	Machines machine.Set
	Body     bodyWork
	session  protocol.Session

	draining   draining
	who        protocol.Who
	Handshakes cluster.Handshakes
	silent     bool // a member without a log: it does not take part yet
	Links      *cluster.Links
	// dials are the members that it dials at the right address.
	dials map[protocol.MemberID]bool

	drops []droppedBody

	// instances decides which instances are active. retired are no longer active and stay for a while.
	instances *lifecycle.Instances[*MemberInstance]
	Retired   []*MemberInstance

	// Proposals are batches that wait for an instance. favorite is the instance for the next batch;
	// 0: any.
	Proposals intake.Proposals
	favorite  protocol.InstanceID
	inbox     int // bytes of messages that wait for turns

	gathering  [2]*readers // the groups that new readers join: plain reads, and barriers
	Operations cluster.Executions
	Executing  []*cluster.Execution // of operators

	greeted   time.Duration // when the member last made handshakes
	condemned error         // why the member stops as soon as the turn ends

	applying
	// snapshots
	Snapped order.Cursor // the newest that is durable, also if others sent it and Apply has not seen it
	cutAt   int64        // bytes applied in this incarnation when the newest snapshot was written
	health  damage.DiskHealth
	scrub   *damage.Scrub // nil: nothing is scrubbed

	fitting *fitting // nil: nothing is fitted
	// ended is the largest number of instances in the log at a tick, in runs with switches: the log drops those before a
	// seal later, and a start rewrites the rest of each.
	ended int
}

// NewMember returns a member with an empty disk, which is not started.
func NewMember(w *Environment, id protocol.MemberID) *Member {
	return &Member{
		process: process{Env: w, ID: id, rate: 1}, drive: drive{Disk: device.NewDisk()},
		Own: w.settingsOf(id), URL: home(id),
	}
}

// fail stops the member: its disk failed, or it found an inconsistency.
func (m *Member) fail(err error) {
	m.Env.Tracef("%s stops: %v", m.ID, err)
	m.Env.Observer.Failed(m, err)
	m.Crash()
}

// Crash stops the process like a power failure: unsynced data may be lost. In runs with Kills the machine may run on
// instead: unsynced data is there, and a later power failure may lose it.
func (m *Member) Crash() {
	if !m.Up {
		return
	}
	m.Up, m.Down = false, m.Env.Now()
	m.Env.Tracef("%s   is down", m.ID)
	m.Env.Count(memberCrashes)
	m.Life++ // the rest of this step then finds the member down
	if m.Env.Set.Kills && !m.Disk.PowerLost() && m.Env.Chance(0.5) {
		m.Env.Count(membersKilled)
		m.Env.Tracef("%s   its machine runs on", m.ID)
		m.Disk = m.Disk.Kill()
	} else {
		m.Disk = m.Disk.Crash(m.Env.Rand)
	}
	if m.Machines.First.Durable() && m.Env.Chance(0.5) {
		m.Saved = m.Machines.First.Freeze() // its own transactions may be ahead of the last Sync
	}
	m.Paused, m.Stalled, m.Sluggish, m.delayed, m.Lagging = 0, 0, 0, 0, 0
	m.Frozen = false
}

// Admit runs a client's request as soon as the process can accept it.
func (m *Member) Admit(do func()) {
	if m.Frozen {
		do()
		return
	}
	m.WhenAwake(do)
}

func (m *Member) tick() {
	if m.Env.Tracing() && m.Env.Out.Ticks {
		m.Env.Tracef("%s tick", m.ID)
	}
	for _, s := range m.hosted() {
		if s.ticks() {
			s.tick = !m.silent
			s.wake()
		}
	}
	m.Body.tick()
	if !m.Up {
		return
	}
	m.Env.Observer.Ticked(m)
	if m.Env.Set.Switches {
		m.ended = max(m.ended, len(m.Log.Instances()))
	}
	m.greet()
	m.tickLater(time.Duration(float64(m.Own.Tick) / m.rate))
}

// receive handles a frame that arrives. It must reject a damaged frame and accept any other.
func (m *Member) receive(f *flight) {
	if !m.Up {
		return
	}
	if m.Paused > m.Env.Now() {
		m.delayed = max(m.delayed, m.Paused)
		m.Later(m.Paused-m.Env.Now(), func() { m.receive(f) })
		return
	}
	if !m.Env.linked(f.from, f.life, m) || !m.Up {
		return
	}
	msg, err := m.Env.decode(f.frame)
	if f.damaged != (err != nil) {
		m.Env.Violate(m.ID, fmt.Errorf("frame damaged: %t, decodes: %v", f.damaged, err))
	}
	if err != nil {
		return
	}
	if m.Env.Tracing() {
		m.Env.Tracef("%s ← %s %s  (sent %.6f)", m.ID, msg.From, m.Env.describe(msg), f.sent.Seconds())
	}
	if !m.hears(msg) || m.Body.fetched(msg) {
		return
	}
	s := m.Of(msg.Instance)
	if s == nil {
		s, _ = m.instances.Receive(f.frame)
		m.Env.Violate(m.ID, m.instances.Check())
	}
	switch {
	case s != nil:
		s.message(msg, len(f.frame))
	case m.instances.Sealed(msg.Instance):
		m.Exchange.Missing(msg.From, msg.Instance)
	default:
		if id := m.instances.Behind(f.frame, m.Clock(), m.tuning.Election); id != 0 {
			m.askMissing(msg.From, id)
		}
	}
}

// Of returns the member's part of an instance, or nil if it has none.
func (r *Running) Of(instance protocol.InstanceID) *MemberInstance {
	for _, s := range r.InForce {
		if s.Instance == instance {
			return s
		}
	}
	return r.Among(r.Retired, instance)
}

// Propose asks the member to replicate the command of an operation, with its body if it has one, and with options
// unless these are nil. It puts the command into to. done is called once, unless the member stops first.
func (m *Member) Propose(to commands, bytes []byte, op *history.Operation, o *protocol.ProposeOptions, done intake.Done) {
	body := op.Body
	m.Admit(func() {
		if m.Env.Set.Shortage > 0 && m.refuses() {
			done(nil, errLowDisk)
			return
		}
		fresh, err := false, m.Proposals.Fits(bytes, body)
		switch {
		case err != nil:
		case body != nil:
			b := intake.NewBodyBatch(bytes, body, done)
			if o != nil {
				err = m.Proposals.SetOptions(b, o)
			}
			if err == nil {
				fresh, err = to.AddBody(m.Clock, b)
			}
		case o != nil:
			fresh, err = to.AddWith(m.Clock, bytes, o, done)
		default:
			fresh, err = to.Add(m.Clock, bytes, done)
		}
		if err != nil {
			m.Env.Count(writesOverloaded)
			done(nil, err)
			return
		}
		if op.Ticket = m.Proposals.Last(); fresh {
			m.WakeTakers()
		}
	})
}

// WakeTakers wakes the instances that may take the next batch.
func (m *Member) WakeTakers() {
	bytes, full, _ := m.Proposals.Waiting()
	instance.WakeTakers(m.Crew, m.Env.Set.Keyed, 0, instance.Large(bytes, full), func(i int) { m.InForce[i].wake() })
}

// syncTime returns the duration of a sync that begins now.
func (m *Member) syncTime() time.Duration {
	s := m.Env.Set
	d := m.Env.Between(s.SyncMin, s.SyncMax)
	if m.Slow && !m.Env.Calm {
		d *= 20
		m.Sluggish = max(m.Sluggish, m.Env.Now()+d)
	}
	if m.Late {
		d *= Late
	}
	if m.fitting != nil {
		m.fitting.disk.Syncs++
		m.fitting.disk.Time += d
	}
	return d
}

// settled is called when a batch has its results: it adds them to the load, and releases bytes of proposals.
func (m *Member) settled(b *intake.Batch) { m.Proposals.Settled(m.Clock(), b) }

// LeadsAny reports whether the member believes that it leads some instance.
func (r *Running) LeadsAny() bool { return slices.ContainsFunc(r.InForce, (*MemberInstance).Leads) }

// Replaced reports whether the member believes that it leads an instance, while another member
// leads a later term of it.
func (m *Member) Replaced() bool {
	return slices.ContainsFunc(m.InForce, func(s *MemberInstance) bool { return s.Leads() && m.Env.LeaderOf(s.Instance) != m })
}

// Strange reports whether the member runs on another disk than the one that other members know.
func (m *Member) Strange() bool { return m.Strangers > 0 || m.Odd }

// Judged returns the member's number for the judges.
func (m *Member) Judged() uint64 {
	n := uint64(m.ID) | uint64(m.Strangers-m.Blank)<<32
	if m.Odd {
		n |= 1 << 48
	}
	return n
}

// Reached returns a member's progress, to find the member with the latest membership.
func (r *Running) Reached() protocol.Position {
	at := r.Applier.Cursor()
	if at.Keyed {
		return protocol.Position(at.Points[0].Index)
	}
	return at.Position
}

// Sick reports whether the member's state is damaged.
func (r *Running) Sick() bool { return r.Machines.First.Damage() != nil }

// CheckState implements replica.Replica's CheckState.
func (m *Member) CheckState() { m.Push(apply.ApplyItem{Halt: true}) }

// Stateless reports whether the member does not have the cluster's initial state yet.
func (m *Member) Stateless() bool {
	return m.Env.Set.Birth != "" && !m.Strange() && (m.Saved == nil || m.Saved.Birth == "")
}

// commands accepts clients' commands: a member's proposals, or a client's queue in front of them.
type commands interface {
	Add(now func() time.Duration, command []byte, done intake.Done) (fresh bool, err error)
	AddWith(now func() time.Duration, command []byte, o *protocol.ProposeOptions, done intake.Done) (fresh bool, err error)
	AddBody(now func() time.Duration, b *intake.Batch) (fresh bool, err error)
}

// Withdraw withdraws a command and calls then, if the command has not left the member.
func (m *Member) Withdraw(t intake.Ticket, then func()) {
	ok, instance := m.Proposals.Withdraw(t)
	if ok {
		then()
		return
	}
	s := m.Among(m.hosted(), instance)
	if s == nil || s.ended {
		return
	}
	s.Do(func() {
		if s.Hosted.Withdraw(t) {
			then()
		}
	})
}

// judgeHeldBatch checks that the member has applied everything that the commands of a batch must follow, if the
// member ensures that and not the core. Results alone do not show it: in some protocols accepted commands take effect
// before all later proposals anyway.
func judgeHeldBatch(m *Member, b *intake.Batch) {
	if b == nil || len(m.Env.History.Tokens) == 0 || m.Env.Set.Proposing().Tokens {
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
		m.Env.Violate(m.ID, m.Env.History.ProposedAt(number, m.Machines.First.Position()))
	}
}

// Applied returns the last index of an instance that the state machine has applied.
func (r *Running) Applied(instance protocol.InstanceID) protocol.Index {
	cursor, _ := r.Progress.At()
	return cursor.Point(instance).Index
}

// Backup is a copy of a member's disk, made while it was stopped.
type Backup struct {
	Disk  *device.Disk
	Saved *machine.State
	Life  uint64 // the last incarnation that began on it
	// Alone: on this disk the member is the only voter. Then it decides alone, and asks no member that could know more
	// (docs/internals/identity.md).
	Alone bool
}

// Late is the factor by which a slow disk's syncs take longer than others.
const Late = 10
