package node

import (
	"cmp"
	"fmt"

	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/format"
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

// Starts of a member from its disk.

// Start begins a new incarnation from the disk, as replica.Open does.
func (m *Member) Start() error {
	m.Life++
	goesAstray(m)
	machines, err := stateMachines(m)
	if err != nil {
		return err
	}
	config := directory(m, machines.All)
	refused := checkDirectory(m.Disk, &config)
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
	m.Lives = dir.Own.Incarnation
	r := &Running{Began: m.Env.Now(), Machines: machines, dir: dir, Log: dir.Log, Snaps: dir.Snapshots,
		session: dir.Session(), ended: len(dir.Instances.Retired())}
	dir.Register.Mutant = m.Env.Set.MutantName()
	r.who, r.Handshakes = dir.Own.Who(), cluster.NewHandshakes(dir.Register, dir.Birth, handshakeWorld{m, dir})
	r.Handshakes.Mutant, r.Handshakes.Newest = m.Env.Set.MutantName(), m.knows()
	r.Handshakes.Shared = m.shared(&dir.Begin)
	r.Handshakes.Recover(&dir.Meta.Config, dir.Grown(&dir.Meta.Cursor), dir.Format())
	for _, o := range r.Handshakes.Shared.Overruled(&dir.Meta.Config.Profile) {
		m.Env.Tracef("%s   %s is %s, the log has %s", m.ID, o.Name, o.Here, o.Used)
	}
	if err := dir.Register.Descends(dir.Meta.Config.Lineage); err != nil {
		return err
	}
	if m.Given == nil {
		m.Given = m.Env.given(m)
	}
	m.tuning, m.tunedTo = m.Own.tuning(), 0
	r.Links = cluster.NewLinks(m.ID, m.tuning.Election, m.Given)
	r.Links.Mutant = m.Env.Set.MutantName()
	if err := m.open(r, dir); err != nil {
		return err
	}
	m.Running, m.Up = r, true
	m.Env.Tracef("%s   is up", m.ID)
	m.Env.Count(memberStarts)
	build(m, dir.Meta, dir.Skip)
	if m.relink(); !m.Up {
		return nil
	}
	joinsOther(m)
	at := m.Applier.Cursor()
	if why := instance.Expelled(&at, m.Statuses()); why != nil {
		m.Env.Observer.Expelled(m, why)
		return nil
	}
	m.hear()
	m.tickLater(m.Env.Between(0, m.Own.Tick))
	m.beginFitting()
	return nil
}

// checkDirectory checks that the inspection before opening refuses a directory only if opening it is refused too.
func checkDirectory(d *device.Disk, c *datadir.Config) error {
	failAt, powerAt := d.FailAt, d.PowerAt
	d.FailAt, d.PowerAt = 0, 0
	err := c.Check()
	d.FailAt, d.PowerAt = failAt, powerAt
	return err
}

// goesAstray draws, at a start, whether this incarnation has the state machine of another log.
func goesAstray(m *Member) {
	m.Astray = 0
	if w := m.Env; !w.Calm && w.Set.Astray > 0 && m.Lives > 0 && w.From(astrayLives).Yes(w.Set.Astray) {
		w.Tracef("FAULT %s has the state machine of another log", m.ID)
		m.Astray = farAhead
	}
}

// stateMachines returns the member's state machines, with the state on its disk.
func stateMachines(m *Member) (machine.Set, error) {
	w := m.Env
	c := machine.Config{
		Member: m.ID, Orders: &w.Orders, Birth: w.Set.Birth, Begin: m.Saved, Ahead: m.Astray,
		Applied: w.History.Applied, Dropped: m.dropped, Violate: func(err error) { w.Violate(m.ID, err) },
	}
	if w.Set.Durable {
		c.Save = func(s *machine.State) { m.Saved = s }
	}
	if w.Tracing() {
		c.Trace = w.Tracef
	}
	if !w.Set.Keyed {
		return machine.NewSet(c, nil)
	}
	begin := w.Set.begin()
	return machine.NewSet(c, begin.Instances())
}

// directory returns the options to open the member's directory.
func directory(m *Member, sm member.StateMachine) datadir.Config {
	first := m.Env.Set.firstConfig()
	if m.Join {
		first.Members = nil
	}
	begin := m.Env.Set.begin()
	kind := m.Env.Set.kind()
	if set := m.Env.Set; m.ID%2 == 1 && !m.started && !set.beginsLate() && !set.Noted && !set.TunesLanes() &&
		!set.Switches && !(begin.Merged() && set.Protocol.Core.Judged.ManyLead) {
		// An earlier version does not record it, and has no merged instances with many leaders. Later incarnations infer
		// it. If that needs an entry of the first leader, a crash just before it leaves a log that another core may have
		// written. An earlier version does not turn lanes on either.
		kind = member.LogKind{}
		m.unnoted = true
	}
	m.started = true
	m.drawFlags(kind, &begin)
	return datadir.Config{
		Kind: kind, Guess: func() member.KindGuess { return registry.NewGuess() },
		FS: m.Disk, Dir: device.Root, Cluster: clusterID, Self: m.ID, Chance: m.Env.From(identities).Rand.Uint64,
		Begin: begin, Members: first.Members, Profile: first.Profile, Join: m.Join,
		Profiled: m.Join && first.Profile.Version > 0, Machine: sm,
		Identity: []byte{byte(m.ID)}, Cells: m.Env.Set.cells() != nil, Accepted: m.Env.Set.accepted,
		Derive: m.Env.Set.derive(), Epochs: m.Env.Set.epochsTold(), Quorums: m.Env.Set.Quorums.String(),
		LogSegment: m.Own.SegmentBytes, BodySegment: m.Env.Set.Bodies.SegmentBytes, Newest: m.knows(),
	}
}

// knows is the newest format that the member's program knows.
func (m *Member) knows() int { return cmp.Or(m.Newest, format.First) }

// logOptions returns the options to open the member's log.
func (m *Member) logOptions(d *device.Disk, meta *member.Meta) wal.Options {
	return wal.Options{FS: d, Dir: LogDir, SegmentBytes: m.Own.SegmentBytes, Identity: []byte{byte(m.ID)}, Cover: lifecycle.CoverOf(meta, m.Env.Set.mayHaveCells())}
}

// build creates the parts of the member.
func build(m *Member, meta member.Meta, skip protocol.Position) {
	m.Writer = newWriter(m, m.Log, m.Body.Store)
	s := m.Own
	m.Snapped = meta.Cursor
	if beginApplying(m, meta, skip); m.Sick() {
		m.CheckState()
	}
	m.Proposals = intake.Proposals{MaxBatch: s.BatchBytes, MaxCount: s.BatchCommands,
		MaxBytes: cmp.Or(s.PendingBytes, 1<<30), Proposing: *s.proposingOf(s.CoreOf(&meta.Config.Profile)),
		Mutant: s.MutantName()}
	m.Operations.Config = member.OperationConfig{Self: m.ID, Mutant: s.MutantName(),
		Grows: func(p *protocol.Profile) bool { return s.growsWith(s.CoreOf(p)) }}
	m.Operations.Config.Tune(&m.tuning)
	if m.Env.Set.Keyed {
		m.Proposals.SetGroups(meta.Cursor.Instances())
	}
	m.Proposals.Free = m.settled
	m.Proposals.Held = m.Look
	m.Body.kept.NotifyAll()
	m.health.Passed(m.Snaps.Damaged, m.Log.Damaged())
	m.Env.Events.Add(damagedSnapshotsFound, len(m.Snaps.Damaged))
	if s.Bodies.Scrub > 0 {
		m.ScrubLater(s.Bodies.Scrub)
	} else if s.Rots {
		m.ScrubLater(4 * s.Election)
	}
}

// astrayLives draws which members are started with another log's state machine.
var astrayLives = draw.New("astray lives")

// farAhead is the distance by which the state machine of another log is ahead. No run gets that far.
const farAhead protocol.Position = 1 << 40
