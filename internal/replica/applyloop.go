package replica

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// applyLoop is the goroutine that runs a member's Apply. It also is what Apply needs of the
// member: see applyworld.go.
type applyLoop struct {
	r       *Replica
	machine *apply.Apply

	mu    sync.Mutex
	queue apply.ApplyQueue
	wake  chan struct{}

	reading [2]atomic.Int64 // groups of reads that wait for read indexes; see Applied.Asking
	amu     sync.Mutex
	known   *apply.Applied
	within  within
	opened  time.Duration // when the last snapshot was opened to be read
	// looks: someone waits for tokens, and Apply is going to look.
	looks atomic.Bool
	total atomic.Int64 // how much was applied since the start
	busy  busy
}

func newApplyLoop(r *Replica, a *apply.Applier, saved order.Cursor) *applyLoop {
	l := &applyLoop{r: r, wake: make(chan struct{}, 1), known: apply.NewApplied(a)}
	l.within.init()
	l.queue.Limit = apply.ApplyQueueBytes
	begin := a.Meta()
	l.queue.Plans = apply.NewPlanner(&begin)
	l.machine = apply.NewApply(a, saved, r.opt.SnapshotBytes, applyWorld{l})
	return l
}

// push queues one item; it never blocks.
func (l *applyLoop) push(it apply.ApplyItem) {
	l.mu.Lock()
	l.queue.Push(it)
	planned := len(it.Commit.Entries) > 0 && l.queue.Planned()
	l.mu.Unlock()
	poke(l.wake)
	if planned {
		l.r.planned()
	}
}

// wakeReaders makes Apply look who waits for what is applied already.
func (l *applyLoop) wakeReaders() {
	if !l.looks.Swap(true) {
		l.push(apply.ApplyItem{Look: true})
	}
}

// nextPlan returns the plan that is to be carried out next; nil if there is none.
func (l *applyLoop) nextPlan() *apply.PlannedAt {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.TakePlan()
}

// voidSeals returns the seals that turned out to be void.
func (l *applyLoop) voidSeals() []apply.VoidSeal {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.TakeVoid()
}

// pushInstall queues a snapshot that an instance has accepted.
func (l *applyLoop) pushInstall(instance protocol.InstanceID, base *protocol.Base) {
	l.mu.Lock()
	dropped := l.queue.PushInstall(instance, base)
	l.mu.Unlock()
	for i := range dropped {
		dropped[i].Drop(member.ErrResultUnknown)
	}
	poke(l.wake)
}

func (l *applyLoop) overtaken(err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.Overtaken(err)
}

// installing reports whether a snapshot of another member is to be installed.
func (l *applyLoop) installing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.Installing()
}

func (l *applyLoop) drainItems(buf []apply.ApplyItem) []apply.ApplyItem {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.Take(buf)
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
	l.within.goroutine.Store(goroutine())
	var items []apply.ApplyItem
	for {
		select {
		case <-l.wake:
		case <-l.r.stop:
			l.drain()
			return
		}
		l.busy.begin(l.r, l.r.tuning())
		items = l.drainItems(items)
		for i := range items {
			l.within.begin()
			err := l.machine.Do(&items[i])
			l.within.calls.Add(1)
			if err != nil && !l.overtaken(err) {
				l.r.fail(err)
				drop(items[i+1:])
				l.drain()
				return
			}
		}
		clear(items)
		l.busy.end(l.r)
	}
}

// drain answers everything that still waits when the loop ends.
func (l *applyLoop) drain() {
	drop(l.drainItems(nil))
	l.machine.FailOwn(member.ErrStopped)
}

func drop(items []apply.ApplyItem) {
	for i := range items {
		items[i].Drop(member.ErrStopped)
	}
}

// at returns the applied cursor and the applied memberships of the active instances.
func (l *applyLoop) at() (order.Cursor, []protocol.Config) {
	l.amu.Lock()
	defer l.amu.Unlock()
	return l.known.At()
}

// instances returns how many instances are active.
func (l *applyLoop) instances() int {
	l.amu.Lock()
	defer l.amu.Unlock()
	return len(l.known.Shape())
}

// config returns the applied membership of an instance. For an instance that is not active it returns the cluster's
// membership.
func (l *applyLoop) config(instance protocol.InstanceID) protocol.Config {
	l.amu.Lock()
	defer l.amu.Unlock()
	return l.known.Config(instance)
}

// appliedOf returns the last entry of an instance that is in the order, and the last one that is applied. ok is false
// if the instance is not active.
func (l *applyLoop) appliedOf(instance protocol.InstanceID) (added, applied protocol.Index, ok bool) {
	l.amu.Lock()
	defer l.amu.Unlock()
	return l.known.Of(instance)
}

// backlogOf returns how many entries of an instance wait to be applied.
func (l *applyLoop) backlogOf(instance protocol.InstanceID) int {
	l.amu.Lock()
	defer l.amu.Unlock()
	return l.known.Backlog(instance)
}
