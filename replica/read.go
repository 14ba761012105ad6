package replica

import (
	"context"
	"errors"

	"github.com/braidlog/braid/protocol"
)

// readGroup is reads that are answered together: one confirmation of leadership, of every
// instance, serves everything that came before it was asked for.
type readGroup struct {
	done chan struct{}
	err  error
	// vector and ended, which says that done is closed, are guarded by the apply loop's amu.
	vector ReadVector
	ended  bool
}

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
	if g != nil && l.r.reading.Load() < maxReadGroups {
		l.reads = nil
	} else {
		g = nil
	}
	l.mu.Unlock()
	for _, g := range asked {
		l.readFor(g)
	}
	if g != nil {
		l.r.reading.Add(1)
		l.beginRead(g)
	}
}

func (l *loop) beginRead(g *readGroup) {
	loops := l.r.loops.Load()
	l.r.apply.ask(g, loops.ids)
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

// ask begins a group's read point, of these instances.
func (l *applyLoop) ask(g *readGroup, shape []protocol.InstanceID) {
	l.amu.Lock()
	defer l.amu.Unlock()
	g.vector.Ask(shape)
}

// readPoint takes in an instance's part of a group's read point. With the last one the group
// waits until all is applied.
func (l *applyLoop) readPoint(g *readGroup, instance protocol.InstanceID, index protocol.Index) {
	l.amu.Lock()
	complete := g.vector.Point(instance, index)
	ready := complete && g.vector.Reached(l.added) && !g.vector.Void(l.shape)
	switch {
	case ready:
		g.ended = true
	case complete:
		l.waiting = append(l.waiting, g)
	}
	l.amu.Unlock()
	if complete {
		l.readDone()
	}
	if ready {
		close(g.done)
	}
}

// served takes those groups out that can be answered, or must be asked anew. amu is held.
func (l *applyLoop) served() (ready, void []*readGroup) {
	keep := l.waiting[:0]
	for _, g := range l.waiting {
		switch {
		case g.vector.Void(l.shape):
			void = append(void, g)
		case g.vector.Reached(l.added):
			g.ended = true
			ready = append(ready, g)
		default:
			keep = append(keep, g)
		}
	}
	clear(l.waiting[len(keep):])
	l.waiting = keep
	return ready, void
}

// answer releases the readers of groups, and has others asked for again: the instances in
// force changed under them.
func (l *applyLoop) answer(ready, void []*readGroup) {
	for _, g := range ready {
		close(g.done)
	}
	for _, g := range void {
		l.r.reading.Add(1)
		first := l.r.first()
		first.do(func() { first.beginRead(g) })
	}
}

// readDone lets the next group begin.
func (l *applyLoop) readDone() {
	l.r.reading.Add(-1)
	if len(l.r.all()) > 1 {
		poke(l.r.first().wake)
	}
}

// failRead tells the readers of a group that there is no answer, once.
func (l *applyLoop) failRead(g *readGroup, err error) {
	l.amu.Lock()
	first := !g.ended
	g.ended = true
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
