package replica

import (
	"context"
	"errors"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
)

// readGroup is a group of reads for which callers of ReadBarrier wait.
type readGroup struct {
	member.ReadGroup
	done chan struct{} // closed when the group has ended; then err is set
	err  error
}

func newReadGroup() *readGroup {
	g := &readGroup{done: make(chan struct{})}
	g.Done = func(err error) {
		g.err = err
		close(g.done)
	}
	return g
}

// joinRead adds a reader to the group that is asked for next.
func (l *eventLoop) joinRead() (*readGroup, error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, l.r.stopped()
	}
	fresh := !l.reads.Gathering()
	if fresh {
		l.joined = newReadGroup()
		l.reads.Gather(&l.joined.ReadGroup)
	}
	g := l.joined
	l.mu.Unlock()
	if fresh {
		poke(l.wake)
	}
	return g, nil
}

// handRead has the loop ask for its part of a group's read point.
func (l *eventLoop) handRead(g *member.ReadGroup) {
	l.mu.Lock()
	closed := l.closed
	handed := l.reads.Hand(g) // into one that is closed in vain
	l.mu.Unlock()
	switch {
	case !handed:
		l.r.askAgain([]*member.ReadGroup{g})
	case closed:
		l.r.apply.failRead(g, l.r.stopped())
	default:
		poke(l.wake)
	}
}

// ask begins a group's read point, of these instances, unless the group has ended.
func (l *applyLoop) ask(g *member.ReadGroup, shape []protocol.InstanceID) bool {
	l.amu.Lock()
	defer l.amu.Unlock()
	ok := l.known.Ask(g, shape)
	l.reading.Store(int64(l.known.Asking()))
	return ok
}

// readPoint takes in an instance's part of a group's read point. With the last one the group
// waits until all is applied.
func (l *applyLoop) readPoint(g *member.ReadGroup, instance protocol.InstanceID, index protocol.Index) {
	l.amu.Lock()
	complete, ready := l.known.ReadPoint(g, instance, index)
	l.reading.Store(int64(l.known.Asking()))
	l.amu.Unlock()
	if complete {
		l.readDone()
	}
	if ready {
		g.Done(nil)
	}
}

// answer releases the readers of groups, and has others asked for again: the instances in
// force changed under them.
func (l *applyLoop) answer(ready, void []*member.ReadGroup) {
	for _, g := range ready {
		g.Done(nil)
	}
	l.r.askAgain(void)
}

// readDone lets the next group begin.
func (l *applyLoop) readDone() {
	if len(l.r.all()) > 1 {
		poke(l.r.first().wake)
	}
}

// failRead tells the readers of a group that there is no answer, once.
func (l *applyLoop) failRead(g *member.ReadGroup, err error) {
	l.amu.Lock()
	first := l.known.FailRead(g)
	l.reading.Store(int64(l.known.Asking()))
	l.amu.Unlock()
	if first {
		g.Done(err)
		l.readDone()
	}
}

// ReadBarrier returns when this member's state machine includes everything that was
// acknowledged anywhere before the call. An error means that nothing is known; retry.
func (r *Replica) ReadBarrier(ctx context.Context) error {
	g, err := r.first().joinRead()
	if err != nil {
		return err
	}
	select {
	case <-g.done:
		return g.err
	case <-ctx.Done():
		return errors.Join(member.ErrReadTimeout, ctx.Err())
	case <-r.stop:
		return r.stopped()
	}
}
