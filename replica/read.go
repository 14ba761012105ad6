package replica

import (
	"context"
	"errors"
)

// readGroup is reads that are answered together: one confirmation of leadership serves
// everything that came before it was asked for.
type readGroup struct {
	done chan struct{}
	err  error
}

func (g *readGroup) finish(err error) {
	g.err = err
	close(g.done)
}

// maxReadGroups is how many groups may be under way; later reads gather in the next one.
const maxReadGroups = 2

// ReadBarrier returns when this member's state machine includes everything that was
// acknowledged anywhere before the call. An error means that nothing is known; retry.
func (r *Replica) ReadBarrier(ctx context.Context) error {
	g, err := r.loop.joinRead()
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
