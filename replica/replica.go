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

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/transport"
	"github.com/braidlog/braid/wal"
)

// Replica is one member: its log, its links, its instances and its state machine. Its
// methods are safe for concurrent use.
type Replica struct {
	opt      Options
	log      *slog.Logger
	instance protocol.InstanceID

	began    time.Time
	lock     interface{ Close() error }
	wal      *wal.Log
	bodies   *bodies
	writer   *wal.Writer
	snaps    *Snapshots
	links    *transport.Transport
	load     Loader
	proposer *proposer
	loop     *loop
	apply    *applyLoop
	waiters  sync.Pool
	metrics  counters
	known    map[protocol.MemberID]knownPeer // the loop's, after start

	// changes are membership changes and transfers under way, by context.
	cmu      sync.Mutex
	changes  map[uint64]chan protocol.Rejection
	contexts atomic.Uint64
	notify   chan struct{} // a token after every change of leader, term or membership

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

// Open starts a member: it recovers from its directory and begins to take part. sm must
// be as it was when the member stopped (on disk) or empty (in memory).
func Open(o Options, sm StateMachine) (r *Replica, err error) {
	session, lock, err := Enter(o.FS, o.Dir, o.Cluster, o.Self)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r = &Replica{
		opt: o, log: o.Logger, instance: 1, began: time.Now(), lock: lock,
		known: map[protocol.MemberID]knownPeer{}, changes: map[uint64]chan protocol.Rejection{},
		notify: make(chan struct{}, 1), ctx: ctx, cancel: cancel, stop: ctx.Done(), ended: make(chan struct{}),
	}
	r.waiters.New = func() any { return newWaiter() }
	if err := r.open(session, sm); err != nil {
		cancel()
		return nil, errors.Join(err, r.release())
	}
	r.done.Add(2)
	go r.loop.run()
	go r.apply.run()
	r.bodies.start()
	go r.wait()
	return r, nil
}

func (r *Replica) open(session protocol.Session, sm StateMachine) (err error) {
	o := &r.opt
	if r.snaps, err = OpenSnapshots(o.FS, filepath.Join(o.Dir, "snapshots")); err != nil {
		return err
	}
	if err := r.begin(sm); err != nil {
		return err
	}
	meta, skip, err := Restore(r.snaps, sm)
	if err != nil {
		return err
	}
	if r.wal, err = wal.Open(wal.Options{FS: o.FS, Dir: filepath.Join(o.Dir, "log"), Identity: o.identity()}); err != nil {
		return err
	}
	rec, err := Recover(r.wal, r.instance, meta)
	if err != nil {
		return err
	}
	if err := r.openBodies(sm, &rec); err != nil {
		return err
	}
	core, err := o.Core(r.instance, rec)
	if err != nil {
		return err
	}
	r.load = LoadFrom(r.wal)
	r.writer = wal.NewWriter(r.wal, r.bodies.store)
	r.log.Info("recovered", "term", rec.State.Term, "base", rec.Base.Index, "entries", len(rec.Entries),
		"commit", rec.State.Commit, "position", meta.Cursor.Position, "applied", max(skip, meta.Cursor.Position), "incarnation", session.Incarnation)
	r.assemble(core, session, NewApplier(sm, meta, session, skip, r.load))
	return r.connect(&rec)
}

// begin writes the first snapshot of a new cluster: nothing, but who its members are. A
// joining member begins with nobody and waits to be told.
func (r *Replica) begin(sm StateMachine) error {
	if _, ok, err := r.snaps.Newest(); ok || err != nil {
		return err
	}
	if d, ok := sm.(DurableStateMachine); ok && d.Applied() > 0 {
		return &DirError{r.opt.Dir, fmt.Sprintf("is new, but the state machine is at position %d", d.Applied())}
	}
	members := r.opt.Members
	if r.opt.Join {
		members = nil
	}
	return r.snaps.Write(SnapshotHeader{Meta: Bootstrap(r.opt.Begin, members)}, nil)
}

func (r *Replica) assemble(core protocol.Core, session protocol.Session, a *Applier) {
	o := &r.opt
	a.Given, a.Passed = r.bodies.given, r.bodies.passed
	r.apply = newApplyLoop(r, a)
	r.loop = newLoop(r, NewInstance(InstanceConfig{
		Self: o.Self, Instance: r.instance, Session: session, Depth: o.Depth,
		RetryAfter: o.ElectionTimeout, GiveUp: o.GiveUp(),
	}, core))
	r.proposer = &proposer{
		clock: r.now, wake: func() { poke(r.loop.wake) },
		maxBatch: o.MaxBatchBytes, maxCount: o.MaxBatchCommands, maxBytes: o.MaxPendingBytes,
	}
}

func (r *Replica) connect(rec *protocol.Recovered) (err error) {
	emulation, err := transport.ParseEmulation(r.opt.Net)
	if err != nil {
		return err
	}
	r.links, err = transport.New(transport.Options{
		Self: uint64(r.opt.Self), Cluster: r.opt.Cluster, SettingsHash: r.opt.settingsHash(),
		Listen: r.opt.Listen, TLS: r.opt.TLS, Net: emulation, MaxFrameBytes: max(64<<20, r.opt.MaxCommandBytes+1<<20),
		Handler: r, Logger: r.log, AcceptUnknown: r.mayTalk,
	})
	if err != nil {
		return err
	}
	for _, m := range r.opt.Members {
		if m.ID != r.opt.Self {
			r.known[m.ID] = knownPeer{addrs: addresses(m.PeerURLs)}
		}
	}
	r.setPeers()
	r.relink(r.now(), &rec.Base.Config)
	r.bodies.follow(&r.loop.status.Load().Config)
	return nil
}

// openBodies opens the store of bodies and finds out which of them are alive.
func (r *Replica) openBodies(sm StateMachine, rec *protocol.Recovered) error {
	refs, keeper, err := LiveBodies(sm)
	if err != nil {
		return err
	}
	store, err := wal.OpenBodies(wal.BodiesOptions{FS: r.opt.FS, Dir: filepath.Join(r.opt.Dir, "bodies"), Identity: r.opt.identity()})
	if err != nil {
		return err
	}
	r.bodies = newBodies(r, store, keeper)
	if err := RecoverBodies([]InstanceLog{{r.instance, rec}}, store, refs); err != nil {
		return err
	}
	r.bodies.retention.Restart(rec.Base.Index, refs)
	return nil
}

// mayTalk decides about connections from members that this one does not know (yet): it
// may be behind, so all but those that were removed may talk.
func (r *Replica) mayTalk(id uint64) bool {
	_, config := r.apply.at()
	for _, gone := range config.Removed {
		if uint64(gone) == id {
			return false
		}
	}
	return true
}

// now is the member's clock.
func (r *Replica) now() time.Duration { return time.Since(r.began) }

// spawn runs f until it ends or the member stops.
func (r *Replica) spawn(f func(ctx context.Context)) {
	r.done.Add(1)
	go func() {
		defer r.done.Done()
		f(r.ctx)
	}()
}

// changed wakes whoever watches Changes.
func (r *Replica) changed() { poke(r.notify) }

// Changes returns a channel that holds a token after leader, term or membership changed.
func (r *Replica) Changes() <-chan struct{} { return r.notify }

// fail stops the member for a reason. The first one counts.
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
		return errors.Join(ErrStopped, r.err)
	}
	return ErrStopped
}

// wait cleans up when the member stops, for whatever reason.
func (r *Replica) wait() {
	<-r.stop
	r.done.Wait()
	r.apply.drain() // what the event loop handed over after the apply loop had ended
	err := r.release()
	r.emu.Lock()
	r.err = errors.Join(r.err, err)
	r.emu.Unlock()
	close(r.ended)
}

// release closes what was opened, in reverse.
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

// ignoreFailed drops the error that stopped the log earlier: it was reported then.
func ignoreFailed(err error) error {
	var failed *wal.FailedError
	if errors.As(err, &failed) {
		return nil
	}
	return err
}

// Done is closed when the member stopped completely.
func (r *Replica) Done() <-chan struct{} { return r.ended }

// Err tells why the member stopped: nil while it runs and after Close.
func (r *Replica) Err() error {
	r.emu.Lock()
	defer r.emu.Unlock()
	return r.err
}

// Close stops the member and waits until everything is closed.
func (r *Replica) Close() error {
	r.cancel()
	<-r.ended
	return r.Err()
}
