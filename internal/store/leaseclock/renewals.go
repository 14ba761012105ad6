package leaseclock

import (
	"math"
	"time"
)

// Hold keeps a lease from ending until Release, for a renewal that came, and returns it. It does not extend
// the lease. It returns nil if there is no such lease, or if the renewal does not count because the end
// of the lease is decided.
func (c *Clock) Hold(id int64) *Lease {
	l := c.leases[id]
	if l == nil || !c.acting || l.state != running {
		return nil
	}
	l.holds++
	return l
}

// Release ends what Hold began. If the renewal counts, the lease has its full time again, whether the
// renewal was answered or given up, because its client did what it could and may try again. If it was
// refused, the lease has the time that it had.
func (c *Clock) Release(now time.Time, l *Lease, counts bool) {
	l.holds--
	if counts {
		l.extend(now)
	}
}

// Verdict is how to answer a renewal that was confirmed.
type Verdict uint8

const (
	Done      Verdict = iota
	Unknown           // there is no such lease
	Ending            // its end was decided: wait for it
	Shortened         // the lease would be too short under the next primary: order that it was renewed
	Stale             // the confirmation began too long ago: confirm again
	Elsewhere         // this member is not the primary lessor
)

// Answer decides about a renewal after a confirmation, which began at began, that this member was
// the primary lessor. ttl is what may be promised, in seconds.
//
// A later primary was promoted after began. It gives the lease its time from then on and the
// extension. So this one may promise that much and no more.
func (c *Clock) Answer(now, began time.Time, id int64) (ttl int64, v Verdict) {
	l := c.leases[id]
	switch {
	case !c.acting:
		return 0, Elsewhere
	case l == nil:
		return 0, Unknown
	case l.state == ending:
		return 0, Ending
	case l.remaining > 0 || l.checkpoint.newest > c.checkpoints.effective || c.recorded && !l.past.renewed:
		return 0, Shortened
	}
	over := now.Sub(began) - c.Extension
	ttl = l.ttl
	if over > 0 {
		ttl -= int64(math.Ceil(over.Seconds()))
	}
	if ttl < 1 {
		return 0, Stale
	}
	l.extend(now)
	if l.checkpoint.next.IsZero() {
		c.schedule(now, l, l.ttl)
	}
	return ttl, Done
}
