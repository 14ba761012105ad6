package replica

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
)

// eventLoop executes an instance: one goroutine with a mailbox, whose turns member.Hosted decides. What
// that asks for is in host.go.
type eventLoop struct {
	r      *Replica
	id     protocol.InstanceID
	inst   *member.Instance
	hosted *member.Hosted
	kept   *instanceBodies

	mu     sync.Mutex
	inputs []protocol.Input
	jobs   []func()         // other things to do in the loop
	bytes  int              // of messages in inputs; counted in Replica.inbox
	reads  member.ReadQueue // not asked for yet
	joined *readGroup       // the group that gathers in reads, if one does
	closed bool
	wake   chan struct{}

	persisted atomic.Uint64 // last durable step; the log's goroutine raises it
	load      atomic.Uint64 // a packed Load, but for its Round
	round     atomic.Uint64
	status    atomic.Pointer[protocol.Status]
	woven     atomic.Pointer[member.WeaveStatus]
	harmed    atomic.Uint64 // the last index of which the record on disk is damaged; 0: none
}

func newEventLoop(r *Replica, id protocol.InstanceID, inst *member.Instance, kept *instanceBodies) *eventLoop {
	o := &r.opt
	l := &eventLoop{r: r, id: id, inst: inst, kept: kept, wake: kept.wake}
	l.hosted = member.NewHosted(member.HostedConfig{
		Self: o.Self, Instance: id, Heartbeat: o.Heartbeat, Election: o.ElectionTimeout, GiveUp: o.GiveUp(), Leaders: o.Leaders,
		KeepLogBytes: o.KeepLogBytes, LargeMessage: member.LargeMessage, LargeFor: member.LargeFor,
	}, l, inst)
	return l
}

// input queues something that happened. It reports false if the queue is full.
func (l *eventLoop) input(in protocol.Input, bytes int) bool {
	l.mu.Lock()
	if l.closed || bytes > 0 && !l.r.inbox.take(l.bytes, bytes, len(l.r.loops.Load().all)) {
		l.mu.Unlock()
		return false
	}
	l.bytes += bytes
	l.inputs = append(l.inputs, in)
	l.mu.Unlock()
	poke(l.wake)
	return true
}

// takeInputs takes out what waits, for a buffer in its place.
func (l *eventLoop) takeInputs(buf []protocol.Input) (inputs []protocol.Input, jobs []func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	inputs, l.inputs = l.inputs, buf[:0]
	jobs, l.jobs = l.jobs, nil
	l.r.inbox.give(l.bytes)
	l.bytes = 0
	return inputs, jobs
}

// do runs f in the loop, soon.
func (l *eventLoop) do(f func()) {
	l.mu.Lock()
	l.jobs = append(l.jobs, f)
	l.mu.Unlock()
	poke(l.wake)
}

func (l *eventLoop) run() {
	defer l.r.done.Done()
	ticker := time.NewTicker(max(l.r.opt.Heartbeat/10, time.Millisecond))
	defer ticker.Stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	t := member.Happened{}
	for {
		t.Tick = false
		select {
		case <-l.wake:
		case <-timer.C:
		case <-ticker.C:
			t.Tick, t.Random = true, rand.Uint64()
		case <-l.r.stop:
			l.shut()
			return
		}
		t.Inputs, t.Jobs = l.takeInputs(t.Inputs)
		t.Durable = l.persisted.Load()
		l.hosted.Take(t)
		due := l.hosted.Finish()
		clear(t.Inputs)
		if l.hosted.Ended() {
			l.leave()
			return
		}
		if due > 0 {
			timer.Reset(due - l.r.now())
		}
	}
}

// wrote is called by the log's goroutine when everything up to seq is durable.
func (l *eventLoop) wrote(seq uint64, err error) {
	if err != nil {
		l.r.fail(err)
		return
	}
	l.persisted.Store(seq)
	poke(l.wake)
}

// snapshotWritten cuts the log under a durable snapshot.
func (l *eventLoop) snapshotWritten(meta member.Meta, bytes int64) {
	l.do(func() {
		l.hosted.SnapshotWritten(meta.Cursor.Point(l.id).Index, 0, bytes, protocol.Index(l.harmed.Load()), l.streaming)
	})
}

// streaming is where a snapshot stands in this instance's log that is on its way to a member; 0
// if none is or the view of it is not taken yet.
func (l *eventLoop) streaming(to protocol.MemberID) protocol.Index {
	l.r.lmu.Lock()
	defer l.r.lmu.Unlock()
	return l.r.streams.At(to, l.id)
}

// shut ends the loop: nothing more will be answered.
func (l *eventLoop) shut() {
	l.abandon()
	err := l.r.stopped()
	for _, b := range l.r.proposer.close(err) {
		b.Fail(member.ErrStopped)
	}
}

// leave ends the loop of an instance that is retired.
func (l *eventLoop) leave() {
	l.r.forget(l)
	l.abandon()
}

func (l *eventLoop) abandon() {
	l.mu.Lock()
	l.closed = true
	groups := l.reads.Close()
	l.mu.Unlock()
	l.takeInputs(nil)
	err := l.r.stopped()
	for _, g := range groups {
		l.r.apply.failRead(g, err)
	}
	l.hosted.Abandon(err)
}
