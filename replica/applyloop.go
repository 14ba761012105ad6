package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/order"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/wal"
)

// applyLoop is the goroutine that applies what instances commit. Replication does not
// wait for it: what it has not come to yet waits in its queue, without payloads once the
// queue is long.
type applyLoop struct {
	r       *Replica
	applier *member.Applier

	mu    sync.Mutex
	queue []applyItem
	bytes int // resident payload bytes in queue; ≤ applyQueueBytes plus one commitment
	wake  chan struct{}
	// installs are snapshots queued, installed those done; installed ≤ installs.
	installs, installed int

	reading atomic.Int64 // groups of reads that wait for read points: groups.under
	// applied and what waits for it, guarded by amu.
	amu    sync.Mutex
	cursor order.Cursor
	// shape are the instances in force, and added how much of each is in the order, with all
	// that follows from it applied.
	shape    []protocol.InstanceID
	added    []protocol.Index
	backlog  []int // how many entries of each wait for their turn
	groups   member.ReadGroups
	changing []configWaiter
	configs  []protocol.Config // of the instances in force; the first is the cluster's
	needs    order.Cursor      // what a state in place of a damaged one must include
	useless  chan struct{}     // holds a token when a snapshot could not take its place

	total atomic.Int64 // what was applied since the start, as LogKeeper counts
	// since the last snapshot
	logged  int64
	entries int64
	busy    bool // a snapshot is being written
	due     bool // one is wanted, however little was applied since the last one
}

type applyItem struct {
	commit  member.Commitment
	applied chan struct{}  // closed when commit is applied; nil if nobody waits
	install *protocol.Base // of the commitment's instance
	view    chan<- viewReply
	wrote   bool // a snapshot was written (or failed): the next may begin
	due     bool // a snapshot is wanted now
	halt    bool // the state may be damaged
	repair  bool // there may be a snapshot to replace a damaged state
}

type configWaiter struct {
	ok   func([]protocol.Config) bool
	done chan struct{}
}

type viewReply struct {
	header SnapshotHeader
	view   member.Snapshot
	err    error
}

// applyQueueBytes is how many payload bytes may wait to be applied before later ones are
// left on disk and read again in their turn.
const applyQueueBytes = 128 << 20

func newApplyLoop(r *Replica, a *member.Applier) *applyLoop {
	l := &applyLoop{r: r, applier: a, wake: make(chan struct{}, 1), configs: a.Configs(), useless: make(chan struct{}, 1)}
	l.note()
	return l
}

// push queues one item; it never blocks.
func (l *applyLoop) push(it applyItem) {
	l.mu.Lock()
	for i := range it.commit.Entries {
		e := &it.commit.Entries[i]
		if e.BodySize > 0 || l.bytes > applyQueueBytes && e.Kind == protocol.EntryBatch {
			e.Lighten(l.bytes <= applyQueueBytes || e.Kind != protocol.EntryBatch)
		}
		l.bytes += len(e.Payload)
	}
	l.queue = append(l.queue, it)
	l.mu.Unlock()
	poke(l.wake)
}

// pushInstall queues a snapshot in place of the commits of an instance that still wait: it
// stands for them, and the log may be without them as soon as the snapshot is its base. Those
// of other instances stay: their logs are what they were.
func (l *applyLoop) pushInstall(instance protocol.InstanceID, base *protocol.Base) {
	var dropped []applyItem
	l.mu.Lock()
	keep := l.queue[:0]
	for _, it := range l.queue {
		if len(it.commit.Entries) == 0 || it.commit.Instance != instance {
			keep = append(keep, it)
			continue
		}
		dropped = append(dropped, it)
		for i := range it.commit.Entries {
			l.bytes -= len(it.commit.Entries[i].Payload)
		}
	}
	clear(l.queue[len(keep):])
	l.queue = append(keep, applyItem{install: base, commit: member.Commitment{Instance: instance}})
	l.installs++
	l.mu.Unlock()
	for _, it := range dropped {
		for _, b := range it.commit.Own {
			b.Fail(member.ErrResultUnknown)
		}
		if it.applied != nil {
			close(it.applied)
		}
	}
	poke(l.wake)
}

// overtaken reports whether an error is only that the log was cut by a snapshot that
// waits to be installed.
func (l *applyLoop) overtaken(err error) bool {
	var cut *wal.CompactedError
	if !errors.As(err, &cut) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.installs > l.installed
}

// poke puts a token into a channel of capacity one.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (l *applyLoop) run() {
	defer l.r.done.Done()
	var items []applyItem
	for {
		select {
		case <-l.wake:
		case <-l.r.stop:
			l.drain()
			return
		}
		l.mu.Lock()
		items, l.queue = l.queue, items[:0]
		l.mu.Unlock()
		for i := range items {
			if err := l.item(&items[i]); err != nil && !l.overtaken(err) {
				l.r.fail(err)
				l.drain()
				return
			}
		}
		clear(items)
	}
}

// drain answers everything that still waits when the loop ends.
func (l *applyLoop) drain() {
	l.mu.Lock()
	items := l.queue
	l.queue = nil
	l.mu.Unlock()
	for _, it := range items {
		for _, b := range it.commit.Own {
			b.Fail(member.ErrStopped)
		}
		if it.view != nil {
			it.view <- viewReply{err: member.ErrStopped}
		}
	}
	l.applier.FailOwn(member.ErrStopped)
}

func (l *applyLoop) item(it *applyItem) error {
	switch {
	case it.view != nil:
		return l.show(it.view)
	case it.wrote:
		l.busy = false
		return nil
	case it.due:
		l.due = true
	case it.halt:
		if member.Damaged(l.applier.Machine()) != nil {
			l.applier.Halt()
		}
	case it.repair:
		if err := l.repair(); err != nil {
			return err
		}
	case it.install != nil:
		if err := l.install(it.commit.Instance, *it.install); err != nil {
			return err
		}
	default:
		err := l.apply(it.commit)
		if it.applied != nil {
			close(it.applied)
		}
		if err != nil {
			return err
		}
	}
	if l.applier.Stuck() {
		l.mend()
		return nil // what the order says is not what is applied
	}
	l.publish()
	err := l.maybeSnapshot()
	if err != nil && member.Damaged(l.applier.Machine()) != nil {
		l.busy = false
		l.applier.Halt()
		l.mend()
		return nil
	}
	return err
}

// show answers with a view of the state, later if that is not what the order says: then a
// snapshot is in the queue.
func (l *applyLoop) show(reply chan<- viewReply) error {
	if err := member.Damaged(l.applier.Machine()); err != nil {
		reply <- viewReply{err: err}
		return nil
	}
	if l.applier.Stuck() {
		l.push(applyItem{view: reply})
		return nil
	}
	reply <- l.view()
	return nil
}

func (l *applyLoop) apply(c member.Commitment) error {
	before, inOrder := l.applier.Changes, l.applier.Resident()
	err := l.applier.Apply(c)
	resident := inOrder - l.applier.Resident() // what came to its turn
	for i := range c.Entries {
		resident += len(c.Entries[i].Payload)
		l.logged += int64(c.Entries[i].Bytes())
		l.total.Add(member.EntryCost(&c.Entries[i]))
	}
	l.entries += int64(len(c.Entries))
	l.mu.Lock()
	l.bytes -= resident
	l.mu.Unlock()
	if err != nil {
		return err
	}
	if l.applier.Changes != before {
		if err := l.r.reshaped(l.applier); err != nil {
			return err
		}
		l.publishConfig()
	}
	return nil
}

// publish makes known what is applied, and releases the reads that waited for it.
func (l *applyLoop) publish() {
	l.amu.Lock()
	l.note()
	ready, void := l.groups.Served(l.shape, l.added)
	l.amu.Unlock()
	l.answer(ready, void)
}

// note takes down how far the applier is. amu is held, but by newApplyLoop.
func (l *applyLoop) note() {
	l.cursor = l.applier.Cursor()
	if n := len(l.cursor.Points); n != len(l.added) || l.cursor.Points[n-1].Instance != l.shape[n-1] {
		l.shape, l.added = l.cursor.Instances(), make([]protocol.Index, n)
		l.backlog = make([]int, n)
	}
	for i, id := range l.shape {
		l.added[i], l.backlog[i] = l.applier.Added(id), l.applier.Waiting(id)
	}
}

func (l *applyLoop) publishConfig() {
	configs := l.applier.Configs() // shared with nobody who would change them
	l.amu.Lock()
	l.configs = configs
	l.note()
	keep := l.changing[:0]
	for _, w := range l.changing {
		if w.ok(configs) {
			close(w.done)
		} else {
			keep = append(keep, w)
		}
	}
	l.changing = keep
	l.amu.Unlock()
	l.r.bodies.obey(l.applier.Instances)
	l.r.changed()
}

// whenConfig waits until the applied configurations of all instances satisfy ok.
func (l *applyLoop) whenConfig(ctx context.Context, ok func([]protocol.Config) bool) error {
	l.amu.Lock()
	if ok(l.configs) {
		l.amu.Unlock()
		return nil
	}
	w := configWaiter{ok: ok, done: make(chan struct{})}
	l.changing = append(l.changing, w)
	l.amu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", member.ErrMaybeCommitted, ctx.Err())
	case <-l.r.stop:
		return member.ErrStopped
	}
}

// at returns the applied cursor and memberships, of the instances in force.
func (l *applyLoop) at() (order.Cursor, []protocol.Config) {
	l.amu.Lock()
	defer l.amu.Unlock()
	return l.cursor, l.configs
}

// config is the membership of an instance as applied; of one that is not in force the
// cluster's.
func (l *applyLoop) config(instance protocol.InstanceID) protocol.Config {
	l.amu.Lock()
	defer l.amu.Unlock()
	for i, id := range l.shape {
		if id == instance {
			return l.configs[i]
		}
	}
	return l.configs[0]
}

// appliedOf is the last entry of an instance that is in the order, and the last that is applied;
// false if the instance is not in force.
func (l *applyLoop) appliedOf(instance protocol.InstanceID) (added, applied protocol.Index, ok bool) {
	l.amu.Lock()
	defer l.amu.Unlock()
	for i, id := range l.shape {
		if id == instance {
			return l.added[i], l.cursor.Points[i].Index, true
		}
	}
	return 0, 0, false
}

// backlogOf is how many entries of an instance wait for their turn.
func (l *applyLoop) backlogOf(instance protocol.InstanceID) int {
	l.amu.Lock()
	defer l.amu.Unlock()
	for i, id := range l.shape {
		if id == instance {
			return l.backlog[i]
		}
	}
	return 0
}

func (l *applyLoop) view() viewReply {
	view, err := l.applier.Machine().Snapshot()
	return viewReply{header: SnapshotHeader{Meta: l.applier.Meta(), HasState: true}, view: view, err: err}
}

// install replaces the state by the snapshot that an instance has accepted, or by one that
// goes further. Another instance may have had it installed already.
func (l *applyLoop) install(instance protocol.InstanceID, base protocol.Base) error {
	began := time.Now()
	defer func() {
		l.mu.Lock()
		l.installed++
		l.mu.Unlock()
	}()
	switch {
	case l.applier.Of(instance) == nil:
		return nil // it is retired by now
	case l.applier.Added(instance) >= base.Index && base.Index > 0 && !l.applier.Stuck():
		// Another instance had it installed, or one that goes further.
		return l.r.bodies.installed(instance, base.Index, l.applier)
	}
	f, err := l.r.snaps.At(base, instance)
	if err != nil {
		return err
	}
	defer f.Close()
	meta := f.Header.Meta
	if !l.applier.Ahead(&meta) {
		return l.r.bodies.installed(instance, base.Index, l.applier)
	}
	resident := l.applier.Resident()
	after := l.applier.Install(meta, f) // it may be stuck again: another snapshot is to come
	if after != nil && !l.applier.Stuck() {
		return after
	}
	if err := f.Verify(); err != nil {
		return err
	}
	if err := l.r.reshaped(l.applier); err != nil {
		return err
	}
	if err := l.r.bodies.installed(instance, base.Index, l.applier); err != nil {
		return err
	}
	l.logged, l.entries = 0, 0
	l.mu.Lock()
	l.bytes -= resident
	l.mu.Unlock()
	if member.Damaged(l.applier.Machine()) == nil {
		l.r.repairing.Store(false)
	}
	l.r.log.Info("snapshot installed", "instance", instance, "index", base.Index, "term", base.Term, "position", meta.Cursor.Position, "took", time.Since(began))
	if after != nil {
		return after
	}
	l.publishConfig()
	l.r.saved.Store(&meta.Cursor)
	return l.r.snaps.Prune(meta.Cursor.Position)
}
