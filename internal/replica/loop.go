package replica

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/damage"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/snapshot"
	"github.com/braidlog/braid/protocol"
)

// eventLoop runs an instance on one goroutine with an inbox. instance.Hosted decides what happens in a turn. carry.go
// carries that out.
type eventLoop struct {
	r       *Replica
	id      protocol.InstanceID
	program *Program
	hosted  *instance.Hosted
	sender  instance.Sender
	kept    *instanceBodies
	used    *tuning // what hosted was made with, or was given since; of the loop alone once it runs

	mu     sync.Mutex
	inputs []protocol.Input
	jobs   []func()         // functions to run in the loop
	bytes  int              // of messages in inputs; counted in Replica.inbox
	reads  intake.ReadQueue // reads for which the instance has not been asked yet
	joined [2]*readGroup    // the groups that new readers join, if there are any: plain ones, and barriers
	closed bool
	wake   chan struct{}

	asking []*intake.ReadGroup // what TakeReads returned last
	busy   busy

	appendings appendings    // of the loop alone
	persisted  atomic.Uint64 // last durable step; the log's goroutine raises it
	load       atomic.Uint64 // a packed Load without its Round
	round      atomic.Uint64
	status     atomic.Pointer[protocol.Status]
	woven      atomic.Pointer[instance.MergeStatus]
}

func newEventLoop(
	r *Replica, log *member.InstanceLog, program *Program, inst *instance.Instance, kept *instanceBodies,
) *eventLoop {
	o, t, id := &r.opt, r.tuning(), log.Instance
	l := &eventLoop{r: r, id: id, program: program, kept: kept, used: t, wake: kept.wake}
	l.hosted = instance.NewHosted(instance.HostedConfig{
		Self: o.Self, Instance: id, Heartbeat: t.Heartbeat, Election: t.Election, Leaders: t.Leaders,
		Keyed: o.Begin.Keyed, KeepLogBytes: o.KeepLogBytes, Closed: log.Closed, Stands: log.First == o.Self,
	}, instance.Calls{
		Now: r.now, Siblings: func() instance.Siblings { return r.loops.Load() }, Source: l, Rounds: l,
	}, inst)
	l.sender = instance.Sender{
		Stream: instance.StreamAt(log.Place), Codec: inst.Codec(), Links: l, Now: r.now,
		LargeMessage: instance.LargeMessage,
		LargeFor:     instance.LargeFor,
	}
	l.status.Store(l.hosted.Status())
	l.woven.Store(l.hosted.MergeStatus())
	return l
}

// input queues something that happened. bytes is the size of a message, 0 for everything else.
// It reports false if the loop has ended or the inbox is full.
func (l *eventLoop) input(in protocol.Input, bytes int) bool {
	l.mu.Lock()
	if l.closed || bytes > 0 && !l.r.inbox.reserve(l.bytes, bytes, len(l.r.loops.Load().all)) {
		l.mu.Unlock()
		return false
	}
	l.bytes += bytes
	l.inputs = append(l.inputs, in)
	l.mu.Unlock()
	poke(l.wake)
	return true
}

// drainInputs takes out everything that waits, and leaves buf as the next buffer.
func (l *eventLoop) drainInputs(buf []protocol.Input) (inputs []protocol.Input, jobs []func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	inputs, l.inputs = l.inputs, buf[:0]
	jobs, l.jobs = l.jobs, nil
	l.r.inbox.release(l.bytes)
	l.bytes = 0
	return inputs, jobs
}

// do queues f for the loop to run. A loop that has ended does not run it.
func (l *eventLoop) do(f func()) {
	l.mu.Lock()
	if !l.closed {
		l.jobs = append(l.jobs, f)
	}
	l.mu.Unlock()
	poke(l.wake)
}

// run runs the loop until the member stops or the instance ends. begins: the instance begins in a running member, and
// its first turn has a tick. Others may have sent it messages by then.
func (l *eventLoop) run(begins bool) {
	defer l.r.done.Done()
	pace := l.used.ticks()
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	l.r.links.Open(l.sender.Stream)
	t := instance.Happened{}
	for tick := begins; ; tick = false {
		if !tick {
			select {
			case <-l.wake:
			case <-timer.C:
			case <-ticker.C:
				tick = true
			case <-l.r.stop:
				l.shut()
				return
			}
		}
		next := l.r.tuning()
		l.busy.begin(l.r, next)
		if next != l.used {
			l.used = next
			l.hosted.Tune(&next.Tuning)
			pace = 0
		}
		l.refresh(&t, tick)
		l.hosted.Take(&t)
		l.tendReads(tick)
		for turn := l.hosted.Next(); turn != nil; turn = l.hosted.Next() {
			l.carry(turn)
		}
		due := l.hosted.Due()
		clear(t.Inputs)
		if l.hosted.Ended() {
			l.leave()
			return
		}
		if due > 0 {
			timer.Reset(due - l.r.now())
		}
		if next := l.hosted.Ticks(l.used.ticks()); next != pace || tick && next > l.used.ticks() {
			pace = next
			ticker.Reset(pace)
		}
		l.busy.end(l.r)
	}
}

// refresh reads what a turn takes in.
func (l *eventLoop) refresh(t *instance.Happened, tick bool) {
	*t = instance.Happened{Tick: tick, Inputs: t.Inputs}
	t.Inputs, t.Jobs = l.drainInputs(t.Inputs)
	t.Durable = l.persisted.Load()
	t.Added, t.Applied, t.Active = l.r.apply.appliedOf(l.id)
	t.AppliedBytes, t.Saved = l.r.apply.total.Load(), l.r.saved.Load()
	if tick {
		l.lookAround(t)
	}
	if l.kept.changed.Swap(false) {
		t.Bodies, t.BodyNews = l.r.bodies.news(l.kept)
	}
}

// lookAround is refresh for what only a turn with a tick takes in.
func (l *eventLoop) lookAround(t *instance.Happened) {
	t.Random = l.r.opt.chance()
	t.At, t.Configs = l.r.apply.at()
	t.Drained = l.r.drained()
	if l != l.r.first() {
		return
	}
	t.Expired = l.r.proposer.expired(l.r.now(), l.r.tuning().GiveUp)
	if t.Named = l.hosted.NamesDue(); t.Named {
		t.Unnamed = l.r.who.unnamed(l.status.Load())
	}
}

// wrote is called by the log's goroutine when everything up to seq is durable, or with an error.
func (l *eventLoop) wrote(seq uint64, err error) {
	if err != nil {
		l.r.fail(err)
		return
	}
	l.persisted.Store(seq)
	poke(l.wake)
}

// snapshotWritten lets the loop compact the log after a snapshot is durable.
func (l *eventLoop) snapshotWritten(meta member.Meta, bytes int64) {
	l.do(func() {
		var harmed protocol.Index
		l.r.disk.Health(func(d *damage.DiskHealth) { harmed = d.Harmed(l.id) })
		l.cut(l.hosted.SnapshotWritten(meta.Cursor.Point(l.id).Index, 0, bytes, harmed, l.streaming))
	})
}

// streaming returns where a snapshot on its way to a member stands in this instance's log: see
// snapshot.StateExchange.Streaming.
func (l *eventLoop) streaming(to protocol.MemberID) (at protocol.Index) {
	l.r.exchange.do(func(m *snapshot.StateExchange) { at = m.Streaming(to, l.id) })
	return at
}

// shut ends the loop when the member stops. Everybody who waits for an answer gets an error.
func (l *eventLoop) shut() {
	l.abandon()
	err := l.r.stopped()
	for _, b := range l.r.proposer.close(err) {
		b.Fail(member.ErrStopped)
	}
}

// leave ends the loop of an instance that is retired.
func (l *eventLoop) leave() {
	l.r.imu.Lock()
	l.r.instances.Drop(l.id)
	l.r.imu.Unlock()
	l.abandon()
	if !l.r.uses(l.sender.Stream) {
		l.r.links.Forget(l.sender.Streams()...)
	}
}

func (l *eventLoop) abandon() {
	l.mu.Lock()
	l.closed = true
	groups := l.reads.Close()
	l.mu.Unlock()
	l.drainInputs(nil)
	err := l.r.stopped()
	for _, g := range append(groups, l.hosted.Abandon()...) {
		l.r.apply.failRead(g, err)
	}
}

// Waiting implements instance.Source, as TakeBatch and NoteLoad do.
func (l *eventLoop) Waiting() (bytes int, full bool, path protocol.Path) {
	return l.r.proposer.waiting(l.id)
}

func (l *eventLoop) TakeBatch() *intake.Batch { return l.r.proposer.nextBatch(l.id) }

func (l *eventLoop) NoteLoad(load instance.Load) {
	packed := uint64(load.Pending) << 2
	if load.Leads {
		packed |= 2
	}
	if load.Led {
		packed |= 1
	}
	if packed != l.load.Load() {
		l.load.Store(packed)
	}
	if round := uint64(load.Round); round != l.round.Load() {
		l.round.Store(round)
	}
}
