package replica

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// sleeper is a core that wants several Wakes at given times after its first step.
type sleeper struct {
	protocol.Core
	mu      sync.Mutex
	started bool
	began   time.Duration
	want    []time.Duration
	woken   []time.Duration
}

func (s *sleeper) Step(now time.Duration, in protocol.Input, out *protocol.Effects) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		s.started, s.began = true, now
	}
	if _, ok := in.(protocol.Wake); ok {
		s.woken = append(s.woken, now-s.began)
		s.want = s.want[1:]
	} else {
		s.Core.Step(now, in, out)
	}
	if len(s.want) > 0 {
		out.WakeAt = s.began + s.want[0]
	}
}

// A core gets a Wake just when it wants it, between the ticks, and none when it wants none.
func TestACoreIsWoken(t *testing.T) {
	wants := []time.Duration{100 * time.Microsecond, 150 * time.Microsecond, 20*time.Millisecond + 1,
		20*time.Millisecond + 1, time.Minute}
	var asleep *sleeper
	around := func(core protocol.Core) protocol.Core {
		asleep = &sleeper{Core: core, want: slices.Clone(wants)}
		return asleep
	}
	inBubble(t, setting{size: 1, around: around}, func(c *testCluster) {
		c.until("it is woken", func() bool {
			asleep.mu.Lock()
			defer asleep.mu.Unlock()
			return len(asleep.woken) == len(wants)
		})
		c.fill(1, "after", 3)
		asleep.mu.Lock()
		defer asleep.mu.Unlock()
		require.Equal(c.t, wants, asleep.woken)
	})
}
