package scale

import (
	"time"

	"golang.org/x/sys/unix"
)

// worked returns how long a processor has worked for this thread. Costs are differences of it: other processes do not
// add to them, and what the runtime does on other threads meanwhile does not either. The caller has locked its thread.
func worked() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return time.Since(started)
	}
	return time.Duration(t.Nano())
}

// started is any time, from which worked counts where threads have no clocks.
var started = time.Now()
