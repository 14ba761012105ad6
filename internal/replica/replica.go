package replica

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/lifecycle"
	"github.com/braidlog/braid/internal/transport"
	"github.com/braidlog/braid/internal/transport/netspec"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// Replica is one member: its log, its links, its instances and its state machine. Its
// methods are safe for concurrent use.
type Replica struct {
	opt Options
	log *slog.Logger

	began     time.Time
	dir       *datadir.Opened
	bodies    *bodies
	inUse     atomic.Pointer[tuning]
	writer    *wal.Writer
	saved     atomic.Pointer[member.Saved]
	links     links
	framer    instance.Framer
	proposer  *proposer
	router    router
	inbox     inbox
	apply     *applyLoop
	waiters   waiters
	metrics   counters
	stages    stages
	snapshots snapshotTimes
	disk      diskHealth
	session   protocol.Session
	who       acquaintances
	exchange  *exchange
	fitting   *fitting // nil: the log is not fitted

	peering
	hosting

	operations operations
	draining   draining
	watchers   watchers
	ending
}

// peering is what the links follow.
type peering struct {
	pmu   sync.Mutex
	peers *cluster.Links // guarded by pmu, as the transport's peers are
	// followed is the membership that the links follow. Guarded by pmu; the list never changes.
	followed []protocol.Member
}

// hosting is which instances run.
type hosting struct {
	loops     atomic.Pointer[eventLoops]
	imu       sync.Mutex
	instances *lifecycle.Instances[*eventLoop] // guarded by imu
}

// ending is how a member stops, and why. Its methods are safe for concurrent use.
type ending struct {
	logger *slog.Logger
	ctx    context.Context // ends when the member stops
	cancel context.CancelFunc
	stop   <-chan struct{}
	done   sync.WaitGroup
	emu    sync.Mutex
	err    error         // guarded by emu
	late   bool          // it waits for done, so that spawnOutside runs nothing; guarded by emu
	ended  chan struct{} // closed when everything is closed
}

// spawn runs f in a goroutine. ctx ends when the member stops; f must end then.
func (e *ending) spawn(f func(ctx context.Context)) {
	e.done.Add(1)
	go func() {
		defer e.done.Done()
		f(e.ctx)
	}()
}

// spawnOutside is spawn for callers outside of the member's goroutines, which may call while the member stops. It
// reports false, and runs nothing, once the stop waits for all goroutines.
func (e *ending) spawnOutside(f func(ctx context.Context)) bool {
	e.emu.Lock()
	defer e.emu.Unlock()
	if e.late {
		return false
	}
	e.spawn(f)
	return true
}

// refuse makes spawnOutside run nothing more. Only then may anyone wait for done.
func (e *ending) refuse() {
	e.emu.Lock()
	defer e.emu.Unlock()
	e.late = true
}

// fail stops the member because of err. Only the first error is kept.
func (e *ending) fail(err error) {
	e.emu.Lock()
	if e.err == nil && e.ctx.Err() == nil {
		e.err = err
		e.logger.Error("member stops", "err", err)
	}
	e.emu.Unlock()
	e.cancel()
}

func (e *ending) stopped() error {
	e.emu.Lock()
	defer e.emu.Unlock()
	if e.err != nil {
		return errors.Join(member.ErrStopped, e.err)
	}
	return member.ErrStopped
}

// Done returns a channel that is closed when the member has stopped completely.
func (e *ending) Done() <-chan struct{} { return e.ended }

// Err returns why the member stopped. It is nil while the member runs, and after Close if all was well.
func (e *ending) Err() error {
	e.emu.Lock()
	defer e.emu.Unlock()
	return e.err
}

type counters struct {
	commits, dropped, snapshots, starved atomic.Uint64
}

// Open starts a member: it recovers from its directory and begins to take part. A state machine on
// disk must be as it was when the member stopped. A state machine in memory must be empty.
func Open(o Options, sm member.StateMachine) (r *Replica, err error) {
	o.outside()
	sm = datadir.InMemory(sm)
	dir, err := datadir.Open(o.directory(sm))
	if err != nil {
		return nil, err
	}
	o.Begin = dir.Begin
	t, err := o.tuned(&dir.Meta.Config.Profile)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	r = &Replica{
		opt: o, log: o.Logger, began: time.Now(), dir: dir,
		peering: peering{peers: cluster.NewLinks(o.Self, t.Election, o.Members)},
		ending:  ending{logger: o.Logger, ctx: ctx, cancel: cancel, stop: ctx.Done(), ended: make(chan struct{})},
	}
	r.waiters.init(func() bool { return r.apply.within.isLong() }, r.stop)
	r.inUse.Store(t)
	if o.Fitting != nil {
		r.fitting = newFitting(r)
	}
	r.operations.Config.Self, r.operations.Config.Grows = o.Self, r.opt.grows
	r.operations.tune(t)
	if err := r.open(sm); err != nil {
		cancel()
		return nil, errors.Join(err, r.release())
	}
	r.done.Add(2)
	go r.startLoops()
	go r.apply.run()
	r.spawn(r.apply.within.watch)
	r.bodies.start()
	if r.fitting != nil {
		r.spawn(r.fitting.run)
	}
	if o.ScrubBytesPerSecond > 0 {
		r.spawn(r.scrub)
	}
	if dir.Ahead {
		r.log.Warn("the state machine is further than the log; the member goes on if the cluster's log leads there",
			"state", dir.Skip)
		r.spawn(r.findOut)
	}
	go r.wait()
	return r, nil
}

// open puts the member together from what was in its directory.
func (r *Replica) open(sm member.StateMachine) (err error) {
	dir := r.dir
	r.reportDamage()
	if t := r.tuning(); t.profile.Version > 0 {
		r.logOverruled(t)
	}
	r.who.r, r.who.heard = r, make(chan struct{}, 1)
	r.who.handshakes = cluster.NewHandshakes(dir.Register, dir.Birth, handshakeWorld{r})
	r.who.handshakes.Shared = r.opt.Settings.With(&r.opt.Begin)
	r.who.handshakes.Recover(&dir.Meta.Config, dir.Grown(&dir.Meta.Cursor), dir.Format())
	if err := dir.Register.Descends(dir.Meta.Config.Lineage); err != nil {
		return err
	}
	r.saved.Store(&member.Saved{Newest: dir.Meta.Cursor})
	r.instances = lifecycle.NewInstances[*eventLoop](dir.Instances)
	r.bodies = newBodies(r, dir.Bodies)
	if r.bodies.kept, err = dir.Kept(r.bodies.hooks()); err != nil {
		return err
	}
	r.framer = instance.Framer{Load: lifecycle.LoadFrom(dir.Log), Bodies: dir.Bodies, LeftOut: r.bodies.LeftOut}
	r.writer = wal.NewWriter(dir.Log, dir.Bodies)
	r.writer.Waits(r.logWaits)
	at := &dir.Meta.Cursor
	r.log.Info("recovered", "instances", len(at.Points), "position", at.Position, "applied", max(dir.Skip, at.Position),
		"log", dir.Own.Log, "life", dir.Own.Incarnation)
	r.session = dir.Session()
	applier := apply.NewApplier(sm, dir.Meta, r.session, dir.Skip, r.framer.Load)
	applier.Within = dir.Within
	if err := applier.Derive(r.opt.derive, &dir.Meta); err != nil {
		return err
	}
	if err := r.assemble(applier); err != nil {
		return err
	}
	if err := r.connect(); err != nil {
		return err
	}
	r.relink(r.now())
	return nil
}

// reportDamage logs the damage that the start found and passed over.
func (r *Replica) reportDamage() {
	for _, damage := range r.dir.Snapshots.Damaged {
		r.log.Error("a snapshot is damaged; the log continues from the one before", "event", "damage",
			"err", damage)
	}
	for _, damage := range r.dir.Log.Damaged() {
		r.log.Warn("damage in a part of the log that is not needed any more", "event", "damage", "err", damage)
	}
	r.disk.health.Passed(r.dir.Snapshots.Damaged, r.dir.Log.Damaged())
	if err := r.dir.Ballast; err != nil {
		r.log.Warn("the disk has no space for what a start on a full disk needs", "err", err)
	}
}

// assemble makes the event loops.
func (r *Replica) assemble(a *apply.Applier) error {
	o := &r.opt
	a.Given, a.Passed = r.bodies.given, r.bodies.passed
	a.Begins, a.Ends = r.begins, r.ends
	r.dir.Snapshots.Sync = r.syncSnapshot
	a.Malformed = func(instance protocol.InstanceID, index protocol.Index, err error) {
		r.log.Error("a malformed batch in the log takes no effect", "instance", instance, "index", index, "err", err)
	}
	a.Again = func(b *intake.Batch) {
		r.proposer.again([]*intake.Batch{b})
	}
	r.exchange = newExchange(r)
	r.apply = newApplyLoop(r, a, r.dir.Meta.Cursor)
	if member.Damaged(a.Machine()) != nil {
		r.CheckState()
	}
	r.proposer = newProposer(r.now, func(home protocol.InstanceID) {
		loops, large := r.loops.Load(), false
		if len(loops.ids) > 1 && !o.Begin.Keyed {
			bytes, full, _ := r.proposer.waiting(protocol.FirstInstance)
			large = instance.Large(bytes, full)
		}
		instance.WakeTakers(loops, o.Begin.Keyed, home, large, loops.Wake)
	}, r.apply.wakeReaders, o)
	if err := r.instances.Start(instancesHost{r}); err != nil {
		return err
	}
	var instances []*protocol.Status
	for _, l := range r.all() {
		instances = append(instances, l.status.Load())
	}
	at := a.Cursor()
	if why := instance.Expelled(&at, instances); why != nil {
		return why
	}
	return nil
}

// newLoop makes the event loop of an instance from what was on disk.
func (r *Replica) newLoop(log member.InstanceLog) (*eventLoop, error) {
	program, err := r.opt.Program(&log.Recovered.Base.Config.Profile)
	if err != nil {
		return nil, err
	}
	core, err := program.Core(log.Instance, r.session, *log.Recovered)
	if err != nil {
		return nil, err
	}
	t := r.tuning()
	cfg := instance.InstanceConfig{
		Self: r.opt.Self, Instance: log.Instance, Session: r.session, Depth: r.opt.Depth,
		RetryAfter: t.Election, GiveUp: t.GiveUp, Backlog: instance.Backlog(r.apply.instances()),
		Codec: program.Codec, Decided: program.Decided,
	}
	if program.Merges {
		cfg.Merged, cfg.Alone = log.Recovered, r.opt.Begin.BeginsAlone(log.Instance)
	}
	rec := log.Recovered
	r.log.Info("instance recovered", "instance", log.Instance, "term", rec.State.Term, "base", rec.Base.Index,
		"entries", len(rec.Entries), "commit", rec.State.Commit)
	return newEventLoop(r, &log, program, instance.NewInstance(cfg, core), r.bodies.host(log.Instance)), nil
}

func (r *Replica) connect() (err error) {
	emulation, err := netspec.Parse(r.opt.Net)
	if err != nil {
		return err
	}
	if r.opt.TLSByURL {
		r.log.Warn("links between members may be plain, and are not authenticated: stop this once all have TLS")
	}
	r.pmu.Lock() // others may ask for links at once
	defer r.pmu.Unlock()
	links, err := r.opt.newLinks(transport.Options{
		Self: uint64(r.opt.Self), Cluster: r.opt.Cluster, Settings: r.who.told,
		Listen: r.opt.Listen, Dial: r.opt.Dial, Net: emulation,
		TLS: r.opt.TLS, TLSByAddress: r.opt.TLSByURL, TLSBinds: r.opt.TLSBinds,
		MaxFrameBytes: protocol.MaxMessageBytes, Handler: r,
		Logger: r.log, Admit: r.who.admit, Unreachable: r.missed, Deaf: r.fail, Answer: r.answerJoiner,
		Handshake: transport.Handshake{
			Who: onLink(r.dir.Own.Who()), Expects: r.who.expects, Verify: r.who.check, Refused: r.who.unmet, Linked: r.who.met,
			Birth: r.who.birth, Agrees: r.who.agrees, Born: r.who.born, Writes: r.who.writes,
			Lineage: r.who.lineage, Founders: r.who.handshakes.Founders(), CheckOrigin: r.who.relate,
		},
	})
	if err != nil {
		return err
	}
	r.links = links
	r.who.begin()
	return nil
}

// now returns the time since this member was opened: its clock.
func (r *Replica) now() time.Duration { return time.Since(r.began) }

// changed wakes those who watch Changes.
func (r *Replica) changed() { r.watchers.notify() }

// wait cleans up after the member has stopped.
func (r *Replica) wait() {
	<-r.stop
	r.waiters.look()
	links := r.links.Close() // first, because what the others ask for begins goroutines
	r.refuse()
	r.done.Wait()
	r.apply.drain() // items that came after the apply loop had ended
	err := r.release()
	r.waiters.look() // at those who came meanwhile
	r.emu.Lock()
	r.err = errors.Join(r.err, links, err)
	r.emu.Unlock()
	r.watchers.end()
	close(r.ended)
}

// release closes what was opened, in reverse order.
func (r *Replica) release() error {
	var errs []error
	if r.links != nil {
		errs = append(errs, r.links.Close())
	}
	if r.writer != nil {
		errs = append(errs, wal.IgnoreFailed(r.writer.Close()))
	}
	return errors.Join(append(errs, r.dir.Close())...)
}

// Close stops the member and waits until everything is closed. It returns Err. The state machine must not call it: then
// it does nothing, and returns member.ErrWithinApply.
func (r *Replica) Close() error {
	if err := r.fromApply(); err != nil {
		return err
	}
	r.cancel()
	<-r.ended
	return r.Err()
}
