package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/datadir"
	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/order"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/transport"
	"github.com/braidlog/braid/wal"
)

// Replica is one member: its log, its links, its instances and its state machine. Its
// methods are safe for concurrent use.
type Replica struct {
	opt Options
	log *slog.Logger

	began    time.Time
	lock     interface{ Close() error }
	wal      *wal.Log
	bodies   *bodies
	writer   *wal.Writer
	snaps    *datadir.Snapshots
	saved    atomic.Pointer[order.Cursor] // up to where the newest snapshot goes
	links    links
	framer   member.Framer
	proposer *proposer
	loops    atomic.Pointer[eventLoops]
	router   router
	inbox    inbox
	apply    *applyLoop
	waiters  sync.Pool
	metrics  counters
	disk     diskHealth
	session  protocol.Session
	own      member.OwnIdentity
	acquainted
	exchange *exchange

	pmu   sync.Mutex
	peers *member.Links // guarded by pmu, as the transport's peers are

	imu       sync.Mutex
	instances *member.Instances[*eventLoop] // guarded by imu

	operations operations
	notify     chan struct{} // holds a token after every change of leader, term or membership

	ctx    context.Context // ends when the member stops
	cancel context.CancelFunc
	stop   <-chan struct{}
	done   sync.WaitGroup
	emu    sync.Mutex
	err    error
	ended  chan struct{}
}

type counters struct {
	commits, dropped, snapshots atomic.Uint64
}

// Open starts a member: it recovers from its directory and begins to take part. A state machine on
// disk must be as it was when the member stopped. A state machine in memory must be empty.
func Open(o Options, sm member.StateMachine) (r *Replica, err error) {
	o.outside()
	if err := datadir.DropBallast(o.FS, o.Dir); err != nil {
		return nil, err
	}
	own, lock, err := datadir.Enter(o.FS, o.Dir, o.Cluster, o.Self, o.chance)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r = &Replica{
		opt: o, log: o.Logger, began: time.Now(), lock: lock, own: own,
		peers:  member.NewLinks(o.Self, o.ElectionTimeout, o.Members),
		notify: make(chan struct{}, 1), ctx: ctx, cancel: cancel, stop: ctx.Done(), ended: make(chan struct{}),
	}
	r.operations.Config = member.OperationConfig{Self: o.Self, Heartbeat: o.Heartbeat, Election: o.ElectionTimeout, GiveUp: o.GiveUp(), Leaders: o.Leaders}
	r.waiters.New = func() any { return newWaiter() }
	if err := r.open(own.Session(), sm); err != nil {
		cancel()
		return nil, errors.Join(err, r.release())
	}
	if err := datadir.KeepBallast(o.FS, o.Dir); err != nil {
		r.log.Warn("the disk has no room for what a start on a full disk needs", "err", err)
	}
	r.done.Add(2)
	go r.takePart()
	go r.apply.run()
	r.bodies.start()
	if o.ScrubBytesPerSecond > 0 {
		r.spawn(r.scrub)
	}
	go r.wait()
	return r, nil
}

func (r *Replica) open(session protocol.Session, sm member.StateMachine) (err error) {
	o := &r.opt
	register, err := datadir.LoadRegister(o.FS, o.Dir, r.own)
	if err != nil {
		return err
	}
	r.handshakes, r.heard = member.NewHandshakes(register, handshakeWorld{r}), make(chan struct{}, 1)
	if r.snaps, err = datadir.OpenSnapshots(o.FS, filepath.Join(o.Dir, "snapshots")); err != nil {
		return err
	}
	if o.Begin.Woven() {
		begun, err := datadir.Begin(o.FS, o.Dir, o.Cluster, o.Self, len(o.Begin.Points))
		if err != nil {
			return err
		}
		o.Begin = order.Begin(begun, true)
	}
	if err := r.begin(sm); err != nil {
		return err
	}
	meta, skip, err := datadir.Restore(r.snaps, sm)
	if err != nil {
		if member.IsDamage(err) {
			err = &member.LostError{Err: err}
		}
		return err
	}
	for _, damage := range r.snaps.Damaged {
		r.log.Error("a snapshot is damaged; the log goes on from the one before", "err", damage)
	}
	r.saved.Store(&meta.Cursor)
	if r.wal, err = wal.Open(wal.Options{FS: o.FS, Dir: filepath.Join(o.Dir, "log"), Identity: o.identity(), Cover: member.CoverOf(&meta), SegmentBytes: member.SegmentBytes(o.SnapshotBytes)}); err != nil {
		if member.IsDamage(err) {
			err = &member.LostError{Err: err}
		}
		return err
	}
	for _, damage := range r.wal.Damaged() {
		r.log.Warn("damage in the log, of which nothing is needed any more", "err", damage)
	}
	r.disk.health.Passed(r.snaps.Damaged, r.wal.Damaged())
	if r.instances, err = member.FindInstances[*eventLoop](r.wal, &meta); err != nil {
		return err
	}
	if err := r.openBodies(sm, meta.Cursor.Instances(), r.instances.Logs()); err != nil {
		return err
	}
	r.framer = member.Framer{Load: member.LoadFrom(r.wal), Bodies: r.bodies.store, LeftOut: r.bodies.LeftOut}
	r.writer = wal.NewWriter(r.wal, r.bodies.store)
	r.log.Info("recovered", "instances", len(meta.Cursor.Points), "position", meta.Cursor.Position, "applied", max(skip, meta.Cursor.Position), "log", r.own.Log, "life", r.own.Life)
	if err := r.assemble(session, member.NewApplier(sm, meta, session, skip, r.framer.Load)); err != nil {
		return err
	}
	if err := r.connect(); err != nil {
		return err
	}
	r.relink(r.now())
	return nil
}

// begin writes the first snapshot of a new cluster. It holds only who the members are. A joining
// member begins without members, and the cluster tells it later.
func (r *Replica) begin(sm member.StateMachine) error {
	if ok, err := r.snaps.Any(); ok || err != nil {
		return err
	}
	if d, ok := sm.(member.DurableStateMachine); ok && d.Applied() > 0 {
		return &member.DirError{Dir: r.opt.Dir, Detail: fmt.Sprintf("is new, but the state machine is at position %d", d.Applied())}
	}
	members := r.opt.Members
	if r.opt.Join {
		members = nil
	}
	return r.snaps.Write(datadir.SnapshotHeader{Meta: member.Bootstrap(r.opt.Begin, members)}, nil)
}

// assemble makes the event loops.
func (r *Replica) assemble(session protocol.Session, a *member.Applier) error {
	o := &r.opt
	a.Given, a.Passed = r.bodies.given, r.bodies.passed
	a.Malformed = func(instance protocol.InstanceID, index protocol.Index, err error) {
		r.log.Error("a malformed batch in the log takes no effect", "instance", instance, "index", index, "err", err)
	}
	a.Void = func(b *member.Batch) {
		r.proposer.again([]*member.Batch{b})
	}
	r.session = session
	r.exchange = newExchange(r)
	r.apply = newApplyLoop(r, a, *r.saved.Load())
	if member.Damaged(a.Machine()) != nil {
		r.CheckState()
	}
	r.proposer = newProposer(r.now, func() {
		loops := r.loops.Load()
		loops.Wake(member.Preferred(loops))
	}, o)
	if err := r.instances.Start(instancesHost{r}); err != nil {
		return err
	}
	var instances []*protocol.Status
	for _, l := range r.all() {
		instances = append(instances, l.status.Load())
	}
	at := a.Cursor()
	if why := member.Expelled(&at, instances); why != nil {
		return why
	}
	return nil
}

// newLoop makes the event loop of an instance from what was on disk.
func (r *Replica) newLoop(log member.InstanceLog) (*eventLoop, error) {
	core, err := r.opt.Core(log.Instance, *log.Recovered)
	if err != nil {
		return nil, err
	}
	cfg := member.InstanceConfig{
		Self: r.opt.Self, Instance: log.Instance, Session: r.session, Depth: r.opt.Depth,
		RetryAfter: r.opt.ElectionTimeout, GiveUp: r.opt.GiveUp(), Backlog: member.Backlog(r.apply.instances()),
	}
	if r.opt.Begin.Woven() {
		cfg.Woven = log.Recovered
	}
	rec := log.Recovered
	r.log.Info("instance recovered", "instance", log.Instance, "term", rec.State.Term, "base", rec.Base.Index, "entries", len(rec.Entries), "commit", rec.State.Commit)
	return newEventLoop(r, log.Instance, member.NewInstance(cfg, core), r.bodies.host(log.Instance)), nil
}

func (r *Replica) connect() (err error) {
	emulation, err := transport.ParseEmulation(r.opt.Net)
	if err != nil {
		return err
	}
	r.pmu.Lock() // others may ask for links at once
	defer r.pmu.Unlock()
	links, err := r.opt.newLinks(transport.Options{
		Self: uint64(r.opt.Self), Cluster: r.opt.Cluster, Settings: r.opt.settings(),
		Listen: r.opt.Listen, TLS: r.opt.TLS, Net: emulation, MaxFrameBytes: protocol.MaxMessageBytes,
		Handler: r, Logger: r.log, Admit: r.admit,
		Who: onLink(r.own.Who()), Takes: r.takes, Meet: r.meet, Met: r.met,
	})
	if err != nil {
		return err
	}
	r.links = links
	r.wmu.Lock()
	r.handshakes.Begin(r.now(), r.opt.ElectionTimeout, r.instances.Found(), r.opt.Members)
	r.wmu.Unlock()
	return nil
}

// openBodies opens the store of bodies and finds out which of them are live.
func (r *Replica) openBodies(sm member.StateMachine, shape []protocol.InstanceID, logs []member.InstanceLog) error {
	store, err := wal.OpenBodies(wal.BodiesOptions{FS: r.opt.FS, Dir: filepath.Join(r.opt.Dir, "bodies"), Identity: r.opt.identity(), SegmentBytes: member.SegmentBytes(r.opt.SnapshotBytes)})
	if err != nil {
		return err
	}
	r.bodies = newBodies(r, store)
	r.bodies.kept, err = member.OpenKept(r.opt.Self, store, r.bodies.hooks(), sm, shape, logs)
	return err
}

// admit returns why a member that has no link may not connect; 0: it may.
func (r *Replica) admit(id uint64) transport.Reason {
	_, configs := r.apply.at()
	return member.Admit(configs, protocol.MemberID(id))
}

// now returns the time since this member was opened: its clock.
func (r *Replica) now() time.Duration { return time.Since(r.began) }

// spawn runs f in a goroutine. ctx ends when the member stops; f must end then.
func (r *Replica) spawn(f func(ctx context.Context)) {
	r.done.Add(1)
	go func() {
		defer r.done.Done()
		f(r.ctx)
	}()
}

// changed wakes those who watch Changes.
func (r *Replica) changed() { poke(r.notify) }

// Changes returns a channel that holds a token after the leader, term or membership changed.
func (r *Replica) Changes() <-chan struct{} { return r.notify }

// fail stops the member because of err. Only the first error is kept.
func (r *Replica) fail(err error) {
	r.emu.Lock()
	if r.err == nil && r.ctx.Err() == nil {
		r.err = err
		r.log.Error("member stops", "err", err)
	}
	r.emu.Unlock()
	r.cancel()
}

func (r *Replica) stopped() error {
	r.emu.Lock()
	defer r.emu.Unlock()
	if r.err != nil {
		return errors.Join(member.ErrStopped, r.err)
	}
	return member.ErrStopped
}

// wait cleans up after the member has stopped.
func (r *Replica) wait() {
	<-r.stop
	links := r.links.Close() // first, because what the others ask for begins goroutines
	r.done.Wait()
	r.apply.drain() // items that came after the apply loop had ended
	err := r.release()
	r.emu.Lock()
	r.err = errors.Join(r.err, links, err)
	r.emu.Unlock()
	close(r.ended)
}

// release closes what was opened, in reverse order.
func (r *Replica) release() error {
	var errs []error
	if r.links != nil {
		errs = append(errs, r.links.Close())
	}
	if r.writer != nil {
		errs = append(errs, ignoreFailed(r.writer.Close()))
	}
	if r.bodies != nil {
		errs = append(errs, ignoreFailed(r.bodies.store.Close()))
	}
	if r.wal != nil {
		errs = append(errs, ignoreFailed(r.wal.Close()))
	}
	errs = append(errs, r.lock.Close())
	return errors.Join(errs...)
}

// ignoreFailed drops the error that stopped the log: it was reported at that time.
func ignoreFailed(err error) error {
	var failed *wal.FailedError
	if errors.As(err, &failed) {
		return nil
	}
	return err
}

// Done returns a channel that is closed when the member has stopped completely.
func (r *Replica) Done() <-chan struct{} { return r.ended }

// Err returns why the member stopped. It is nil while the member runs, and after Close if all was well.
func (r *Replica) Err() error {
	r.emu.Lock()
	defer r.emu.Unlock()
	return r.err
}

// Close stops the member and waits until everything is closed. It returns Err.
func (r *Replica) Close() error {
	r.cancel()
	<-r.ended
	return r.Err()
}
