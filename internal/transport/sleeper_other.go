//go:build !linux

package transport

import (
	"context"
	"time"
)

// sleeper sleeps as precisely as the runtime's timers do.
type sleeper struct{ ctx context.Context }

func newSleeper(ctx context.Context) (*sleeper, error) { return &sleeper{ctx}, nil }

func (s *sleeper) close() {}

// sleep waits; an error means that it was closed.
func (s *sleeper) sleep(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}
