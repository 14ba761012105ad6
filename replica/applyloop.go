package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/braidlog/braid/order"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/wal"
)

// applyLoop is the goroutine that applies what instances commit. Replication does not
// wait for it: what it has not come to yet waits in its queue, without payloads once the
// queue is long.
type applyLoop struct {
	r       *Replica
	applier *Applier

	mu    sync.Mutex
	queue []applyItem
	bytes int // resident payload bytes in queue; ≤ applyQueueBytes plus one commitment
	wake  chan struct{}
	// installs are snapshots queued, installed those done; installed ≤ installs.
	installs, installed int

	// applied and what waits for it, guarded by amu.
	amu     sync.Mutex
	cursor  order.Cursor
	waiting []applyWaiter
	configs []configWaiter
	config  protocol.Config

	// since the last snapshot
	logged  int64
	entries int64
	busy    bool // a snapshot is being written
}

type applyItem struct {
	commit  Commitment
	applied chan struct{} // closed when commit is applied; nil if nobody waits
	install *protocol.Base
	view    chan<- viewReply
	wrote   bool // a snapshot was written (or failed): the next may begin
}

type applyWaiter struct {
	index protocol.Index
	group *readGroup
}

type configWaiter struct {
	ok   func(*protocol.Config) bool
	done chan struct{}
}

type viewReply struct {
	header SnapshotHeader
	view   Snapshot
	err    error
}

// applyQueueBytes is how many payload bytes may wait to be applied before later ones are
// left on disk and read again in their turn.
const applyQueueBytes = 128 << 20

func newApplyLoop(r *Replica, a *Applier) *applyLoop {
	return &applyLoop{r: r, applier: a, wake: make(chan struct{}, 1), cursor: a.Cursor(), config: a.Config()}
}

// push queues one item; it never blocks.
func (l *applyLoop) push(it applyItem) {
	l.mu.Lock()
	for i := range it.commit.Entries {
		e := &it.commit.Entries[i]
		if l.bytes > applyQueueBytes && e.Kind == protocol.EntryBatch {
			e.Payload = nil
		}
		l.bytes += len(e.Payload)
	}
	l.queue = append(l.queue, it)
	l.mu.Unlock()
	poke(l.wake)
}

// pushInstall queues a snapshot in place of the commits that still wait: it stands for
// them, and the log may be without them as soon as the snapshot is its base.
func (l *applyLoop) pushInstall(base *protocol.Base) {
	var dropped []applyItem
	l.mu.Lock()
	keep := l.queue[:0]
	for _, it := range l.queue {
		if len(it.commit.Entries) == 0 {
			keep = append(keep, it)
			continue
		}
		dropped = append(dropped, it)
		for i := range it.commit.Entries {
			l.bytes -= len(it.commit.Entries[i].Payload)
		}
	}
	clear(l.queue[len(keep):])
	l.queue = append(keep, applyItem{install: base})
	l.installs++
	l.mu.Unlock()
	for _, it := range dropped {
		for _, b := range it.commit.Own {
			b.Fail(ErrResultUnknown)
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
			b.Fail(ErrStopped)
		}
		if it.view != nil {
			it.view <- viewReply{err: ErrStopped}
		}
	}
	l.applier.FailOwn(ErrStopped)
}

func (l *applyLoop) item(it *applyItem) error {
	switch {
	case it.view != nil:
		it.view <- l.view()
		return nil
	case it.wrote:
		l.busy = false
		return nil
	case it.install != nil:
		if err := l.install(*it.install); err != nil {
			return err
		}
	default:
		if err := l.apply(it.commit); err != nil {
			return err
		}
	}
	l.publish()
	if it.applied != nil {
		close(it.applied)
	}
	return l.maybeSnapshot()
}

func (l *applyLoop) apply(c Commitment) error {
	before := l.applier.changes
	err := l.applier.Apply(c)
	resident := 0
	for i := range c.Entries {
		resident += len(c.Entries[i].Payload)
		l.logged += int64(c.Entries[i].Bytes())
	}
	l.entries += int64(len(c.Entries))
	l.mu.Lock()
	l.bytes -= resident
	l.mu.Unlock()
	if err != nil {
		return err
	}
	if l.applier.changes != before {
		l.publishConfig()
	}
	return nil
}

// publish makes the applied index known and releases the reads that waited for it.
func (l *applyLoop) publish() {
	cursor := l.applier.Cursor()
	index := cursor.Points[0].Index
	var ready []*readGroup
	l.amu.Lock()
	l.cursor = cursor
	keep := l.waiting[:0]
	for _, w := range l.waiting {
		if w.index <= index {
			ready = append(ready, w.group)
		} else {
			keep = append(keep, w)
		}
	}
	clear(l.waiting[len(keep):])
	l.waiting = keep
	l.amu.Unlock()
	for _, g := range ready {
		g.finish(nil)
	}
}

func (l *applyLoop) publishConfig() {
	config := l.applier.Config() // shared with nobody who would change it
	l.amu.Lock()
	l.config = config
	keep := l.configs[:0]
	for _, w := range l.configs {
		if w.ok(&config) {
			close(w.done)
		} else {
			keep = append(keep, w)
		}
	}
	l.configs = keep
	l.amu.Unlock()
	l.r.changed()
}

// whenApplied finishes the group as soon as everything up to index is applied.
func (l *applyLoop) whenApplied(index protocol.Index, g *readGroup) {
	l.amu.Lock()
	if l.cursor.Points[0].Index < index {
		l.waiting = append(l.waiting, applyWaiter{index, g})
		g = nil
	}
	l.amu.Unlock()
	if g != nil {
		g.finish(nil)
	}
}

// whenConfig waits until an applied configuration satisfies ok.
func (l *applyLoop) whenConfig(ctx context.Context, ok func(*protocol.Config) bool) error {
	l.amu.Lock()
	if ok(&l.config) {
		l.amu.Unlock()
		return nil
	}
	w := configWaiter{ok: ok, done: make(chan struct{})}
	l.configs = append(l.configs, w)
	l.amu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrMaybeCommitted, ctx.Err())
	case <-l.r.stop:
		return ErrStopped
	}
}

// at returns the applied cursor and membership.
func (l *applyLoop) at() (order.Cursor, protocol.Config) {
	l.amu.Lock()
	defer l.amu.Unlock()
	return l.cursor, l.config
}

func (l *applyLoop) view() viewReply {
	view, err := l.applier.sm.Snapshot()
	return viewReply{header: SnapshotHeader{Meta: l.applier.Meta(), HasState: true}, view: view, err: err}
}

// install replaces the state by the snapshot that was received and accepted.
func (l *applyLoop) install(base protocol.Base) error {
	began := time.Now()
	f, err := l.r.snaps.At(base, l.r.instance)
	if err != nil {
		return err
	}
	defer f.Close()
	meta := f.Header.Meta
	if !l.applier.Ahead(&meta) {
		return nil
	}
	if err := l.applier.Install(meta, f); err != nil {
		return err
	}
	if err := f.Verify(); err != nil {
		return err
	}
	if err := l.r.bodies.installed(base.Index, l.applier.sm); err != nil {
		return err
	}
	l.logged, l.entries = 0, 0
	l.mu.Lock()
	l.installed++
	l.mu.Unlock()
	l.r.log.Info("snapshot installed", "index", base.Index, "term", base.Term, "position", meta.Cursor.Position, "took", time.Since(began))
	l.publishConfig()
	return l.r.snaps.Prune(meta.Cursor.Position)
}
