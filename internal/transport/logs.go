package transport

import (
	"strconv"
	"sync"
	"time"
)

// limiter bounds how often something is logged: burst times, then once in each interval.
type limiter struct {
	every time.Duration
	burst int

	mu      sync.Mutex
	used    int
	last    time.Time
	skipped int
}

// allow reports whether to log, and how many were not logged since the last one.
func (l *limiter) allow() (ok bool, skipped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if back := int(now.Sub(l.last) / l.every); back > 0 {
		l.used = max(0, l.used-back)
		l.last = now
	}
	if l.used >= l.burst {
		l.skipped++
		return false, 0
	}
	l.used++
	skipped, l.skipped = l.skipped, 0
	return true, skipped
}

// refused counts and logs a connection that was refused or failed in the handshake.
func (t *Transport) refused(addr string, err error) {
	t.totals.refused.Add(1)
	if ok, skipped := t.strange.allow(); ok {
		t.log.Warn("incoming connection refused", "event", "connection-refused", "addr", addr,
			"err", err, "not_logged", skipped)
	}
}

// hexID is a member's id, which is written as etcd does.
type hexID uint64

// String implements fmt.Stringer.
func (id hexID) String() string { return strconv.FormatUint(uint64(id), 16) }
