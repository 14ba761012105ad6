package bench

import (
	"context"
	"errors"
	"time"
)

// errLate indicates a request that was not answered in time.
var errLate = errors.New("not answered in time")

// requestLimit gives the requests of one goroutine, which are sequential, a context that ends between half of a limit
// and the whole limit after their start. A timer for each request would be as expensive as the request itself.
type requestLimit struct {
	parent  context.Context
	limit   time.Duration
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timer   *time.Timer
	renewed int64
}

// at returns the context for a request that starts now, in ns on any clock.
func (p *requestLimit) at(now int64) context.Context {
	if p.ctx == nil || p.ctx.Err() != nil || now-p.renewed > int64(p.limit/2) {
		p.renew()
		p.renewed = now
	}
	return p.ctx
}

func (p *requestLimit) renew() {
	if p.timer != nil && p.timer.Stop() && p.ctx.Err() == nil {
		p.timer.Reset(p.limit)
		return
	}
	p.end()
	ctx, cancel := context.WithCancelCause(p.parent)
	p.ctx, p.cancel = ctx, cancel
	p.timer = time.AfterFunc(p.limit, func() { cancel(errLate) })
}

// end frees what the context holds.
func (p *requestLimit) end() {
	if p.timer != nil {
		p.timer.Stop()
		p.cancel(nil)
	}
}

// explain replaces the error of a request that was cancelled because it took too long.
func (p *requestLimit) explain(err error) error {
	if err != nil && errors.Is(context.Cause(p.ctx), errLate) {
		return errors.Join(errLate, err)
	}
	return err
}
