package member

import (
	"time"

	"github.com/braidlog/braid/internal/mutant"
)

// Clock is how an event loop knows the time. The loop reads it again for every step, at the last moment. A turn may
// stand still anywhere, because the process does, or a disk that it reads. By then the time at which the turn began is
// long past. Above all, a lease must not be judged by a time from before the read was asked for
// (docs/internals/raft.md, "What clocks are assumed to do").
type Clock struct {
	Read   func() time.Duration
	Mutant mutant.Name // old-clock

	began time.Duration
}

// Begin is called when a turn begins.
func (c *Clock) Begin() {
	if c.Mutant == MutantOldClock {
		c.began = c.Read()
	}
}

// Now is the time of the step that comes next.
func (c *Clock) Now() time.Duration {
	if c.Mutant == MutantOldClock {
		return c.began
	}
	return c.Read()
}
