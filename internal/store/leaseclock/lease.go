package leaseclock

import "time"

// state is what was decided about a lease. Transitions:
//
//	running  → ending   it expired while no renewal held it (Due)
//	running  → gone     it is revoked, or the state of the store was replaced
//	ending   → gone     the same; until then its end is ordered again and again
//	ending   → running  a term begins (Promote): the end that an earlier primary decided did not take effect
//
// A renewal holds a running lease (Hold, Release). It neither ends nor is shortened meanwhile.
type state uint8

const (
	running state = iota // it ends when it expires, unless a renewal holds it
	ending               // this primary decided its end: renewals come too late
	gone                 // it is revoked, or belongs to a state that was replaced
)

// Lease is a lease and its time. The clock has no users: who may renew a lease is decided before (see Renewal of
// package store).
type Lease struct {
	id  int64
	ttl int64 // seconds
	// remaining is the time left according to the newest checkpoint in effect, in seconds; 0: there is none.
	remaining int64
	state     state
	past      past

	// Of the primary lessor:

	expiry     time.Time
	holds      int       // of renewals
	again      time.Time // when its end is ordered again, while it is ending
	checkpoint checkpoint
	queued     bool // in Clock.queue
}

// past is what every member knows of the terms before the newest one.
type past struct {
	// latest: no renewal that was answered before this term promised more, by this member's clock. Zero: it is not known.
	latest time.Time
	// renewed: the state has that the lease was renewed in this term.
	renewed bool
	// graces counts the terms that began since latest was set, and in which that gave little time.
	graces int
}

// due is not later than the next time at which something must be decided about the lease.
func (l *Lease) due() time.Time {
	switch {
	case l.state == ending:
		return l.again
	case !l.checkpoint.next.IsZero() && l.checkpoint.next.Before(l.expiry):
		return l.checkpoint.next
	}
	return l.expiry
}

// left is the time that a lease has at the beginning of a term, in seconds, if nothing else is known.
func (l *Lease) left() int64 {
	if l.remaining > 0 {
		return l.remaining
	}
	return l.ttl
}

// extend resets the lease to its full time.
func (l *Lease) extend(now time.Time) {
	if expiry := now.Add(seconds(l.ttl)); l.state == running && expiry.After(l.expiry) {
		l.expiry = expiry
	}
}

// claimed begins a term on every member. known: this member knows which leases were renewed in the term before, and
// grace is the least time of a lease in a new one.
func (l *Lease) claimed(now time.Time, known bool, extension, grace time.Duration) {
	p := &l.past
	switch {
	case !known || p.renewed || p.latest.IsZero():
		p.latest, p.graces = now.Add(seconds(l.left())+extension), 0
	case p.latest.Before(now.Add(grace)):
		p.graces++
	}
	p.renewed = false
}

// expiryInTerm is when the lease ends in a term that begins now.
func (l *Lease) expiryInTerm(now time.Time, extension, grace time.Duration) time.Time {
	expiry := l.past.latest
	if expiry.IsZero() { // it came with a snapshot
		expiry = now.Add(seconds(l.left()) + extension)
	}
	if least := now.Add(grace); l.past.graces <= mostGraces && expiry.Before(least) {
		expiry = least
	}
	return expiry
}

// longest is the longest lease of etcd, in seconds. A Duration has seven years more.
const longest = 9_000_000_000

func seconds(n int64) time.Duration { return time.Duration(min(n, longest)) * time.Second }
