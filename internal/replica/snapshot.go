package replica

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/protocol"
)

// Snapshot writes the state as it is applied here when the state machine comes to it, and returns its position. The
// context with which it is written ends when the member stops, too.
func (r *Replica) Snapshot(ctx context.Context, w io.Writer) (protocol.Position, error) {
	v, err := r.view(ctx)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(r.ctx, cancel)
	defer stop()
	if err = errors.Join(v.State.WriteTo(ctx, w), v.State.Close()); err != nil && r.ctx.Err() != nil {
		err = errors.Join(r.stopped(), err)
	}
	return v.Meta.Cursor.Position, err
}

// view returns a view of the state; the caller closes it.
func (r *Replica) view(ctx context.Context) (v apply.StateView, err error) {
	if ctx.Err() != nil {
		return v, errors.Join(member.ErrReadTimeout, ctx.Err())
	}
	if err := r.fromApply(); err != nil {
		return v, err
	}
	a := awaitedView{view: make(chan apply.StateView, 1)}
	r.apply.push(apply.ApplyItem{View: a.answer})
	select {
	case v = <-a.view:
		return v, v.Err
	case <-ctx.Done():
		err = errors.Join(member.ErrReadTimeout, ctx.Err())
	case <-r.stop:
		err = r.stopped()
	}
	a.abandon()
	return v, err
}

// awaitedView is a view of the state for which a caller waits.
type awaitedView struct {
	mu        sync.Mutex
	abandoned bool
	view      chan apply.StateView // has one element
}

// answer passes the view on. It closes a view for which the caller does not wait any more.
func (a *awaitedView) answer(v apply.StateView) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.abandoned {
		a.view <- v
	} else if v.Err == nil {
		v.State.Close()
	}
}

func (a *awaitedView) abandon() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.abandoned = true
	select {
	case v := <-a.view:
		if v.Err == nil {
			v.State.Close()
		}
	default:
	}
}
