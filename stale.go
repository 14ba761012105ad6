package braid

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/internal/sys"
)

// freshness is how recent the state of this member certainly is. All times are of sys.Steady, so nothing is assumed
// about the clocks of others, and the time in which the host sleeps counts where the system reports it.
type freshness struct {
	// plain and barrier are when the latest reads with ReadOptions.Stale that were confirmed began, without and with
	// ReadOptions.Barrier; nil: none was.
	plain, barrier atomic.Pointer[time.Duration]
}

// covers reports whether the state has everything that was acknowledged that long before now.
func (f *freshness) covers(now, stale time.Duration, barrier bool) bool {
	within := func(p *atomic.Pointer[time.Duration]) bool {
		began := p.Load()
		return began != nil && now-*began <= stale
	}
	return within(&f.barrier) || !barrier && within(&f.plain)
}

// confirm notes that a read that began then was confirmed, and is applied here.
func (f *freshness) confirm(began time.Duration, barrier bool) {
	p := &f.plain
	if barrier {
		p = &f.barrier
	}
	for {
		latest := p.Load()
		if latest != nil && began <= *latest || p.CompareAndSwap(latest, &began) {
			return
		}
	}
}

// readStale is Read with ReadOptions.Stale.
func (n *Node) readStale(ctx context.Context, o *ReadOptions) error {
	began := sys.Steady()
	if n.fresh.covers(began, o.Stale, o.Barrier) {
		return nil
	}
	if err := n.r.ReadAs(ctx, o.Barrier, o.Timeout, o.Stages); err != nil {
		return err
	}
	n.fresh.confirm(began, o.Barrier)
	return nil
}
