package replica

import (
	"context"
	"errors"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/protocol"
)

// readGroup is a group of reads for which callers of ReadBarrier wait together.
type readGroup struct {
	intake.ReadGroup
	l        *eventLoop
	first    *waiter // of the list of those that wait; guarded by l.mu
	answered bool    // no one is in the list any more, or will be; guarded by l.mu
}

func newReadGroup(l *eventLoop, barrier bool) *readGroup {
	g := &readGroup{l: l}
	g.Barrier, g.Passed.Begun = barrier, l.r.now()
	g.Done = g.answer
	return g
}

// answer tells all callers.
func (g *readGroup) answer(err error) {
	g.l.mu.Lock()
	w := g.first
	g.first, g.answered = nil, true
	g.l.mu.Unlock()
	for w != nil {
		next := w.next // w may be used again as soon as it is told
		w.done(nil, err)
		w = next
	}
}

// add puts a waiter into the group. l.mu is held.
func (g *readGroup) add(w *waiter) {
	if g.first != nil {
		g.first.previous = w
	}
	w.group, w.next, g.first = g, g.first, w
}

// leave takes a waiter out of its group, so that nothing is left of a caller while the group waits, which may be long:
// a state machine may wait for space on its disk. It reports false if the waiter's answer has come, or is about to.
func (g *readGroup) leave(w *waiter) bool {
	g.l.mu.Lock()
	if g.answered {
		g.l.mu.Unlock()
		return false
	}
	if w.next != nil {
		w.next.previous = w.previous
	}
	if w.previous != nil {
		w.previous.next = w.next
	} else {
		g.first = w.next
	}
	empty := g.first == nil
	g.l.mu.Unlock()
	if empty {
		g.l.r.apply.dropRead(&g.ReadGroup)
	}
	return true
}

// joinRead adds a reader, who may want a barrier, to the group for which instances are asked next: all of them if
// whole.
func (l *eventLoop) joinRead(barrier, whole bool, w *waiter) error {
	kind := 0
	if barrier {
		kind = 1
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return l.r.stopped()
	}
	if l.reads.Retired() { // a seal has ended the instance since it was looked up
		l.mu.Unlock()
		return l.r.first().joinRead(barrier, whole, w)
	}
	fresh := !l.reads.Gathering(barrier)
	if fresh {
		l.joined[kind] = newReadGroup(l, barrier)
		l.reads.Gather(&l.joined[kind].ReadGroup)
	}
	l.joined[kind].Whole = l.joined[kind].Whole || whole
	l.joined[kind].add(w)
	l.mu.Unlock()
	if fresh {
		poke(l.wake)
	}
	return nil
}

// TakeReads implements instance.Source. The first instance begins a group, and has other instances asked.
func (l *eventLoop) TakeReads() []*intake.ReadGroup {
	under := &l.r.apply.reading
	l.mu.Lock()
	asked, gathered := l.reads.Take([2]int{int(under[0].Load()), int(under[1].Load())})
	l.mu.Unlock()
	clear(l.asking)
	l.asking = append(l.asking[:0], asked...)
	for _, g := range gathered {
		if g != nil && l.beginRead(g) {
			l.asking = append(l.asking, g)
		}
	}
	return l.asking
}

// beginRead makes a group wait for read indexes, and hands it to the instances that are to be asked, except the first,
// which calls it. It reports whether that one is to be asked too.
func (l *eventLoop) beginRead(g *intake.ReadGroup) bool {
	loops := l.r.loops.Load()
	one, ok := l.r.apply.ask(g, loops.since, loops.ids, instance.ReadThrough(loops))
	if !ok {
		return false
	}
	for _, other := range loops.all[1:] {
		if one == 0 || one == other.id {
			other.handRead(g)
		}
	}
	return one == 0 || one == l.id
}

// carryReads has groups wait until what their read indexes say is applied, and fails those that get none.
func (l *eventLoop) carryReads(t *instance.Turn) {
	for i := range t.ReadIndexes {
		l.r.apply.addReadIndex(t.ReadIndexes[i].Group, l.id, t.ReadIndexes[i].Index)
	}
	for _, g := range t.FailedReads {
		l.r.apply.failRead(g, member.ErrReadTimeout)
	}
}

// retire ends what this member does through the instance, and has others do it.
func (l *eventLoop) retire() {
	batches, groups := l.hosted.Retire()
	l.r.proposer.again(batches)
	l.mu.Lock()
	asked := l.reads.Retire()
	l.mu.Unlock()
	l.r.askAgain(append(asked, groups...))
}

// handRead makes the loop ask for its instance's part of a group's read index.
func (l *eventLoop) handRead(g *intake.ReadGroup) {
	l.mu.Lock()
	closed := l.closed
	handed := l.reads.Hand(g) // a closed queue never gives it out
	l.mu.Unlock()
	switch {
	case !handed:
		l.r.askAgain([]*intake.ReadGroup{g})
	case closed:
		l.r.apply.failRead(g, l.r.stopped())
	default:
		poke(l.wake)
	}
}

// ask begins a group's read index: see apply.Applied.Ask. It returns the only instance that is to be asked, 0: all are.
// It reports false if the group has ended.
func (l *applyLoop) ask(g *intake.ReadGroup, since protocol.Position, shape []protocol.InstanceID,
	one protocol.InstanceID) (asked protocol.InstanceID, ok bool) {
	l.amu.Lock()
	defer l.amu.Unlock()
	if ok = l.known.Ask(g, since, shape, one); ok {
		g.Passed.Asked = l.r.now()
	}
	l.noteReading()
	return g.One(), ok
}

// addReadIndex adds an instance's part of a group's read index. After the last part the group waits until everything up
// to the read index is applied.
func (l *applyLoop) addReadIndex(g *intake.ReadGroup, instance protocol.InstanceID, index protocol.Index) {
	l.amu.Lock()
	complete, ready, look := l.known.AddReadIndex(g, instance, index)
	if complete {
		g.Passed.Confirmed = l.r.now()
	}
	l.noteReading()
	l.amu.Unlock()
	if look {
		l.wakeReaders()
	}
	if complete {
		l.readDone()
	}
	if ready {
		l.r.served(g, g.Passed.Confirmed)
		g.Done(nil)
	}
}

// answer releases the readers of the groups in ready. It has instances asked again for those in again.
func (l *applyLoop) answer(ready, again []*intake.ReadGroup) {
	for _, g := range ready {
		l.r.served(g, l.r.now())
		g.Done(nil)
	}
	l.r.askAgain(again)
}

// readDone wakes the first instance, so that the next group can begin.
func (l *applyLoop) readDone() {
	if len(l.r.all()) > 1 {
		poke(l.r.first().wake)
	}
}

// failRead fails the readers of a group, unless the group has ended.
func (l *applyLoop) failRead(g *intake.ReadGroup, err error) {
	l.amu.Lock()
	first := l.known.FailRead(g)
	l.noteReading()
	l.amu.Unlock()
	if first {
		g.Done(err)
		l.readDone()
	}
}

// dropRead ends a group in which no one waits, if only the state is missing.
func (l *applyLoop) dropRead(g *intake.ReadGroup) {
	l.amu.Lock()
	defer l.amu.Unlock()
	l.known.DropRead(g)
}

// noteReading publishes how many groups wait for read indexes. It is called under amu.
func (l *applyLoop) noteReading() {
	for i, n := range l.known.Asking() {
		l.reading[i].Store(int64(n))
	}
}

// findOut reads until a read is answered, because a state that is further than the log may be of another one. Then
// the member stops: see apply.StateAheadError.
func (r *Replica) findOut(ctx context.Context) {
	pause := r.pauses()
	defer pause.Stop()
	for r.ReadBarrier(ctx) != nil && r.pause(ctx, pause) == nil {
	}
}

// ReadBarrier returns when this member's state machine includes everything that any member
// acknowledged with a result before the call. After an error the caller knows nothing, and may retry.
func (r *Replica) ReadBarrier(ctx context.Context) error { return r.ReadAs(ctx, false, 0, nil) }

// confirm is ReadBarrier that asks all instances. So this member has heard of the leader of each when it returns.
func (r *Replica) confirm(ctx context.Context) error { return r.readAs(ctx, false, true, 0, nil) }

// AwaitRead is a read of all instances, which is tried again as long as ctx lasts.
func (r *Replica) AwaitRead(ctx context.Context) error {
	err := r.confirm(ctx)
	for errors.Is(err, member.ErrReadTimeout) && ctx.Err() == nil {
		err = r.confirm(ctx) // the call before waited as long as a read does
	}
	return err
}

// ReadAs is ReadBarrier. With barrier the state machine also includes what was acknowledged as accepted. It waits no
// longer than limit, if that is not 0, which costs less than a deadline of ctx. Without an error it sets passed, unless
// that is nil.
func (r *Replica) ReadAs(
	ctx context.Context, barrier bool, limit time.Duration, passed *protocol.ReadStages,
) error {
	return r.readAs(ctx, barrier, false, limit, passed)
}

// readAs is ReadAs, for which all instances are asked if whole.
func (r *Replica) readAs(
	ctx context.Context, barrier, whole bool, limit time.Duration, passed *protocol.ReadStages,
) error {
	if ctx.Err() != nil {
		return errors.Join(member.ErrReadTimeout, ctx.Err())
	}
	w := r.waiters.get()
	w.reads = true
	if passed != nil {
		w.tells, w.readStages, w.began = true, passed, r.now()
	}
	first := r.first()
	if err := first.joinRead(first.program.Proposing.Barrier(barrier), whole, w); err != nil {
		r.waiters.put(w)
		return err
	}
	_, err := r.await(ctx, w, limit)
	return err
}
