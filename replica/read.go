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
		g = newReadGroup()
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
		l.beginRead(&g.ReadGroup)
	}
}

func (l *loop) beginRead(g *member.ReadGroup) {
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
func (l *loop) readFor(g *member.ReadGroup) {
	l.context++
	l.groups[l.context] = g
	l.inst.Read(l.clock.Now(), l.context, &l.out)
}

// handRead has the loop ask for its part of a group's read point.
func (l *loop) handRead(g *member.ReadGroup) {
	l.mu.Lock()
	closed, retired := l.closed, l.retired
	if !closed && !retired {
		l.asked = append(l.asked, g)
	}
	l.mu.Unlock()
	switch {
	case retired:
		l.r.askAgain([]*member.ReadGroup{g})
		return
	case closed:
		l.r.apply.failRead(g, l.r.stopped())
		return
	}
	poke(l.wake)
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
