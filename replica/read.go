package replica

import (
	"context"
	"errors"

	"github.com/braidlog/braid/protocol"
)

// maxReadGroups is how many groups may be under way; later reads gather in the next one.
const maxReadGroups = 2

// joinRead adds a reader to the group that is asked for next.
func (l *loop) joinRead() (*readGroup, error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, l.r.stopped()
	}
	g := l.reads
	fresh := g == nil
	if fresh {
		g = &readGroup{done: make(chan struct{})}
		l.reads = g
	}
	l.mu.Unlock()
	if fresh {
		poke(l.wake)
	}
	return g, nil
}

// read asks for a read point on behalf of the readers that gathered. The first instance's
// loop begins, and has the others ask too.
func (l *loop) read() {
	l.mu.Lock()
	asked, g := l.asked, l.reads
	l.asked = nil
	if g != nil && l.r.apply.reading.Load() < maxReadGroups {
		l.reads = nil
	} else {
		g = nil
	}
	l.mu.Unlock()
	for _, g := range asked {
		l.readFor(g)
	}
	if g != nil {
		l.beginRead(g)
	}
}

func (l *loop) beginRead(g *readGroup) {
	loops := l.r.loops.Load()
	if !l.r.apply.ask(g, loops.ids) {
		return
	}
	for _, o := range loops.all[1:] {
		o.handRead(g)
	}
	l.readFor(g)
}

// readFor asks the instance for its part of a group's read point, now that the group asks.
func (l *loop) readFor(g *readGroup) {
	l.context++
	l.groups[l.context] = g
	l.inst.Read(l.clock.Now(), l.context, &l.out)
}

// handRead has the loop ask for its part of a group's read point.
func (l *loop) handRead(g *readGroup) {
	l.mu.Lock()
	closed, retired := l.closed, l.retired
	if !closed && !retired {
		l.asked = append(l.asked, g)
	}
	l.mu.Unlock()
	switch {
	case retired:
		l.r.askAgain([]*readGroup{g})
		return
	case closed:
		l.r.apply.failRead(g, l.r.stopped())
		return
	}
	poke(l.wake)
}

// ask begins a group's read point, of these instances, unless the group has ended.
func (l *applyLoop) ask(g *readGroup, shape []protocol.InstanceID) bool {
	l.amu.Lock()
	defer l.amu.Unlock()
	ok := l.groups.ask(g, shape)
	l.reading.Store(int64(l.groups.under))
	return ok
}

// readPoint takes in an instance's part of a group's read point. With the last one the group
// waits until all is applied.
func (l *applyLoop) readPoint(g *readGroup, instance protocol.InstanceID, index protocol.Index) {
	l.amu.Lock()
	complete, ready := l.groups.point(g, instance, index, l.shape, l.added)
	l.reading.Store(int64(l.groups.under))
	l.amu.Unlock()
	if complete {
		l.readDone()
	}
	if ready {
		close(g.done)
	}
}

// answer releases the readers of groups, and has others asked for again: the instances in
// force changed under them.
func (l *applyLoop) answer(ready, void []*readGroup) {
	for _, g := range ready {
		close(g.done)
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
func (l *applyLoop) failRead(g *readGroup, err error) {
	l.amu.Lock()
	first := l.groups.fail(g)
	l.reading.Store(int64(l.groups.under))
	l.amu.Unlock()
	if first {
		g.err = err
		close(g.done)
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
		return errors.Join(ErrReadTimeout, ctx.Err())
	case <-r.stop:
		return r.stopped()
	}
}
