package leaseclock

import "time"

// Clock decides when leases end. Every member has one, but only the primary lessor's counts. Its methods get the time,
// which must not go back. It is not safe for concurrent use.
type Clock struct {
	Extension  time.Duration // what a new primary adds to every lease
	Checkpoint time.Duration // how often the rest of a long lease is ordered
	Retry      time.Duration // after which a decision that had no effect is ordered again

	leases map[int64]*Lease

	// Of every member, about the term of the newest claim (see Claimed):

	began time.Time // when this member applied the claim; zero: it did not
	// whole: this member applied everything since the claim. recorded: the primary records renewals, that is, it
	// answers one only when the state has that the lease was renewed in this term.
	whole, recorded bool

	// Of the primary lessor:

	acting      bool
	claim       uint64    // its position
	queue       dueQueue  // of leases, by when something is due at the earliest
	looked      time.Time // when Due was last called
	checkpoints checkpoints
}

const (
	// Tick is how often to call Due.
	Tick = 500 * time.Millisecond
	// leaseStall is how late such a call may be. If it is later, this member has stood still, and renewals may wait
	// that it has not seen.
	leaseStall = 2 * Tick
	// leaseGrace is how long a client whose keep-alive is not answered takes to send another one, which it does every
	// 500 ms, with time to spare. A lease is not kept for that in more than mostGraces terms, if none had the time.
	leaseGrace = 2 * time.Second
	mostGraces = 3
)

// Acting reports whether this member acts as the primary lessor.
func (c *Clock) Acting() bool { return c.acting }

// Claim returns the position of the claim under which this member acts.
func (c *Clock) Claim() uint64 { return c.claim }

// Reset removes all leases.
func (c *Clock) Reset() {
	for _, l := range c.leases {
		l.state = gone
	}
	c.leases, c.queue = map[int64]*Lease{}, nil
	c.began, c.whole = time.Time{}, false
}

// Load adds a lease that was granted before, with the rest that a checkpoint left of it, both in seconds.
func (c *Clock) Load(id, ttl, remaining int64) *Lease {
	l := &Lease{id: id, ttl: ttl, remaining: remaining}
	c.leases[id] = l
	return l
}

// Granted adds a lease of ttl seconds.
func (c *Clock) Granted(now time.Time, id, ttl int64) {
	l := c.Load(id, ttl, 0)
	l.past.latest = now.Add(seconds(ttl) + c.Extension)
	if c.acting {
		c.start(now, l, now.Add(seconds(ttl)))
	}
}

// Revoked removes a lease.
func (c *Clock) Revoked(id int64) {
	if l := c.leases[id]; l != nil {
		l.state = gone
		delete(c.leases, id)
	}
}

// Claimed notes that a claim took effect, on every member: a term ends and another one begins. Leases that may have
// been renewed in the term that ends have their full time from now, or what a checkpoint left of it, and the
// extension, because this member does not know when. If the term's renewals were recorded, the others keep
// the time that they had.
func (c *Clock) Claimed(now time.Time, recorded bool) {
	known := c.whole && c.recorded
	for _, l := range c.leases {
		l.claimed(now, known, c.Extension, c.grace(l))
	}
	c.began, c.whole, c.recorded = now, true, recorded
}

// FollowsSoon reports whether a term that begins now begins soon after the one before, so that it should be
// recorded. Later than that, checkpoints limit leases.
func (c *Clock) FollowsSoon(now time.Time) bool {
	return !c.began.IsZero() && now.Sub(c.began) < c.Checkpoint
}

// grace is the time that a lease has at least when a term begins, so that its client finds the new primary.
func (c *Clock) grace(l *Lease) time.Duration {
	return c.Extension + min(seconds(l.ttl), leaseGrace)
}

// Promote begins a term as the primary lessor, with the time that each lease has according to Claimed. Of the
// checkpoints under its claim, effective is the number of the newest one in the state; of an earlier term under
// the same claim, those that were decided and are not in the state may still come.
func (c *Clock) Promote(now time.Time, claim, effective uint64, recorded bool) {
	c.checkpoints.begin(effective, claim == c.claim)
	c.acting, c.claim, c.looked, c.queue, c.recorded = true, claim, now, nil, recorded
	for _, l := range c.leases {
		c.start(now, l, l.expiryInTerm(now, c.Extension, c.grace(l)))
	}
}

// Demote ends the term: nothing is due any more.
func (c *Clock) Demote() { c.acting, c.queue = false, nil }

// start begins the time of a lease under this primary.
func (c *Clock) start(now time.Time, l *Lease, expiry time.Time) {
	l.state, l.expiry, l.queued = running, expiry, false
	l.checkpoint = checkpoint{newest: c.checkpoints.number, asked: l.checkpoint.asked}
	c.schedule(now, l, l.left())
	c.push(l)
}

// Left returns how much time a lease has; ok is false if this member does not know.
func (c *Clock) Left(now time.Time, id int64) (left time.Duration, ok bool) {
	l := c.leases[id]
	if l == nil || !c.acting {
		return 0, false
	}
	return l.expiry.Sub(now), true
}
