package sim

import (
	"cmp"
	"fmt"

	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/lifecycle"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// How a member starts from what is on its disk.

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

// checkDirectory judges that a directory is refused before it is opened only if it is refused when it is.
func (m *Member) checkDirectory(c *datadir.Config) error {
	failAt, powerAt := m.disk.FailAt, m.disk.PowerAt
	m.disk.FailAt, m.disk.PowerAt = 0, 0
	err := c.Check()
	m.disk.FailAt, m.disk.PowerAt = failAt, powerAt
	return err
}

// goesAstray decides, at a start, whether the member has such a state machine in this life.
func (m *Member) goesAstray() {
	m.astray = 0
	if w := m.w; !w.calm && w.set.Astray > 0 && m.lives > 0 && w.From(astrayLives).Yes(w.set.Astray) {
		w.Tracef("FAULT %s has the state machine of another log", m.id)
		m.astray = farAhead
	}
}

// stateMachines are the member's state machines, with what is on its disk.
func (m *Member) stateMachines() (machine.Set, error) {
	w := m.w
	c := machine.Config{
		Member: m.id, Orders: &w.orders, Birth: w.set.Birth, Begin: m.saved, Ahead: m.astray,
		Applied: w.history.Applied, Dropped: m.dropped, Violate: func(err error) { w.Violate(m.id, err) },
	}
	if w.set.Durable {
		c.Save = func(s *machine.State) { m.saved = s }
	}
	if w.Tracing() {
		c.Trace = w.Tracef
	}
	if !w.set.Keyed {
		return machine.NewSet(c, nil)
	}
	begin := w.set.begin()
	return machine.NewSet(c, begin.Instances())
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
	} else if s.Rots {
		m.scrubLater(4 * s.Election)
	}
}

// astrayLives draws which members are started with another log's state machine.
var astrayLives = draw.New("astray lives")

// farAhead is by how much the state machine of another log is ahead. No run comes there.
const farAhead protocol.Position = 1 << 40
