package leaseclock

import (
	"container/heap"
	"math"
	"time"
)

// Clock decides when leases end. Every member has one, but only the primary lessor's counts.
// It reads no clock and does not wait: callers tell it the time, in order. The rules and why they
// hold are in docs/internals/leases.md.
type Clock struct {
	Extension  time.Duration // what a new primary adds to every lease
	Checkpoint time.Duration // how often what is left of a long lease is ordered
	Retry      time.Duration // after which what was wanted, and did not happen, is wanted again

	Leases map[int64]*Lease

	// Of every member, about the term of the newest claim (see claimed):

	began time.Time // when this member applied the claim; zero: it did not
	// whole: this member applied everything since the claim. recorded: the primary records renewals, that is, it
	// answers one only when the state says that the lease was renewed in this term.
	whole, recorded bool

	// Of the primary lessor:

	Acting bool
	Claim  uint64   // the position of the claim
	queue  dueQueue // of leases, by when something is due at the earliest
	// Number is the number of the newest checkpoint that was decided under the claim. effective is
	// the greatest number of one that took effect; no checkpoint with a lower number can take
	// effect any more.
	Number, effective uint64
	looked            time.Time // when due was last called
	// clears are leases to be cleared. flying is the number of the newest checkpoint that clears, and flew when it
	// was decided.
	clears []*Lease
	flying uint64
	flew   time.Time
}

// leaseState is what has been decided about a lease.
type leaseState uint8

const (
	leaseRuns   leaseState = iota // it ends when it expires, unless a renewal holds it
	leaseEnding                   // this primary decided its end: no renewal comes in time any more
	leaseGone                     // it is revoked, or of another state
)

// Lease is a lease and its time. The clock knows nothing of users: who may renew a lease is decided before
// (see Renewal).
type Lease struct {
	id  int64
	ttl int64 // seconds
	// remaining is what the newest checkpoint in effect says, in seconds; 0: none is.
	remaining int64
	state     leaseState
	// latest: no renewal that was answered before this term promised more, by this member's clock. Zero: it
	// is not known.
	latest time.Time
	// renewed: the state says that the lease was renewed in this term.
	renewed bool
	// graces counts the terms that began since latest was set, and in which that gave little time.
	graces int

	// Of the primary lessor:

	expiry time.Time
	// held counts the renewals that hold the lease. It neither ends nor is shortened meanwhile.
	held  int
	again time.Time // when its end is wanted again; while it is ending
	next  time.Time // when a checkpoint is due; zero: never
	// Numbered is the number of the newest checkpoint with this lease, clearing that of the
	// newest one that takes the others back, asked when that was decided.
	Numbered, clearing uint64
	asked              time.Time
	clears             bool // it is among those that are to be cleared
	queued             bool
}

// due is not later than the next time at which something must be decided about the lease.
func (l *Lease) due() time.Time {
	switch {
	case l.state == leaseEnding:
		return l.again
	case !l.next.IsZero() && l.next.Before(l.expiry):
		return l.next
	}
	return l.expiry
}

func (c *Clock) Reset() {
	for _, l := range c.Leases {
		l.state = leaseGone
	}
	c.Leases, c.queue = map[int64]*Lease{}, nil
	c.began, c.whole = time.Time{}, false
}

// Load adds a lease that was granted before, with what a checkpoint said of it.
func (c *Clock) Load(id, ttl, remaining int64) *Lease {
	l := &Lease{id: id, ttl: ttl, remaining: remaining}
	c.Leases[id] = l
	return l
}

func (c *Clock) Granted(now time.Time, id, ttl int64) {
	l := c.Load(id, ttl, 0)
	l.latest = now.Add(seconds(ttl) + c.Extension)
	if c.Acting {
		c.start(now, l, now.Add(seconds(ttl)))
	}
}

func (c *Clock) Revoked(id int64) {
	if l := c.Leases[id]; l != nil {
		l.state = leaseGone
		delete(c.Leases, id)
	}
}

// left is the time that a lease has at the beginning of a term, in seconds, if nothing else is known.
func (l *Lease) left() int64 {
	if l.remaining > 0 {
		return l.remaining
	}
	return l.ttl
}

// Claimed notes that a claim took effect, on every member: a term ends and another one begins. Leases that may have
// been renewed in the term that ends have their full time from now, or what a checkpoint left of it, and the
// extension, because this member does not know when. If the term's renewals were recorded, the others keep
// the time that they had.
func (c *Clock) Claimed(now time.Time, recorded bool) {
	known := c.whole && c.recorded
	for _, l := range c.Leases {
		switch {
		case !known || l.renewed || l.latest.IsZero():
			l.latest, l.graces = now.Add(seconds(l.left())+c.Extension), 0
		case l.latest.Before(now.Add(c.grace(l))):
			l.graces++
		}
		l.renewed = false
	}
	c.began, c.whole, c.recorded = now, true, recorded
}

// Soon reports whether a term that begins now begins soon after the one before, so that it should be
// recorded. Later than that, checkpoints say what is left of leases.
func (c *Clock) Soon(now time.Time) bool {
	return !c.began.IsZero() && now.Sub(c.began) < c.Checkpoint
}

// grace is the time that a lease has at least when a term begins, so that its client finds the new primary.
func (c *Clock) grace(l *Lease) time.Duration {
	return c.Extension + min(seconds(l.ttl), leaseGrace)
}

// Promote begins a term as the primary lessor, with the time that each lease has according to claimed. Of the
// checkpoints under its claim, effective is the number of the newest one in the state; of an earlier term under
// the same claim, those that were decided and are not in the state may still come.
func (c *Clock) Promote(now time.Time, claim, effective uint64, recorded bool) {
	if claim != c.Claim {
		c.Number = 0
	}
	c.Acting, c.Claim, c.effective, c.Number, c.looked, c.queue = true, claim, effective, max(c.Number, effective), now, nil
	c.recorded, c.clears, c.flying = recorded, nil, 0
	for _, l := range c.Leases {
		expiry := l.latest
		if expiry.IsZero() { // it came with a snapshot
			expiry = now.Add(seconds(l.left()) + c.Extension)
		}
		if least := now.Add(c.grace(l)); l.graces <= mostGraces && expiry.Before(least) {
			expiry = least
		}
		c.start(now, l, expiry)
	}
}

// Demote ends the term: nothing is due any more.
func (c *Clock) Demote() { c.Acting, c.queue = false, nil }

func (c *Clock) start(now time.Time, l *Lease, expiry time.Time) {
	l.state, l.Numbered, l.clearing, l.clears, l.queued, l.expiry = leaseRuns, c.Number, 0, false, false, expiry
	c.schedule(now, l, l.left())
	c.push(l)
}

// schedule plans a checkpoint if enough is left of the lease.
func (c *Clock) schedule(now time.Time, l *Lease, left int64) {
	l.next = time.Time{}
	if seconds(left) > c.Checkpoint {
		l.next = now.Add(c.Checkpoint)
	}
}

// seconds never exceeds what a Duration holds: leases may be that long.
func seconds(n int64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/int64(2*time.Second))) * time.Second
}

func (c *Clock) push(l *Lease) {
	if !l.queued {
		l.queued = true
		heap.Push(&c.queue, dueItem{l.due(), l})
	}
}

// Hold keeps a lease from ending until release, for a renewal that came, and returns it. It does not extend
// the lease. It returns nil if there is no such lease, or if the renewal does not count because the end
// of the lease is decided.
func (c *Clock) Hold(id int64) *Lease {
	l := c.Leases[id]
	if l == nil || !c.Acting || l.state != leaseRuns {
		return nil
	}
	l.held++
	return l
}

// Release ends what hold began. If the renewal counts, the lease has its full time again, whether the
// renewal was answered or given up, because its client did what it could and may try again. If it was
// refused, the lease has the time that it had.
func (c *Clock) Release(now time.Time, l *Lease, counts bool) {
	l.held--
	if counts {
		c.extend(now, l)
	}
}

func (c *Clock) extend(now time.Time, l *Lease) {
	if expiry := now.Add(seconds(l.ttl)); l.state == leaseRuns && expiry.After(l.expiry) {
		l.expiry = expiry
	}
}

// Verdict is what is to be done with a renewal that was confirmed.
type Verdict uint8

const (
	Done        Verdict = iota
	Unknown             // there is no such lease
	renewEnding         // its end was decided: wait for it
	Shortened           // the lease would be too short under the next primary: order that it was renewed
	Stale               // the confirmation began too long ago: confirm again
	Elsewhere           // this member is not the primary lessor
)

// Answer decides about a renewal after a confirmation, which began at began, that this member was
// the primary lessor. ttl is what may be promised.
//
// A later primary was promoted after began. It gives the lease its time from then on and the
// extension. So this one may promise that much and no more.
func (c *Clock) Answer(now, began time.Time, id int64) (ttl int64, v Verdict) {
	l := c.Leases[id]
	switch {
	case !c.Acting:
		return 0, Elsewhere
	case l == nil:
		return 0, Unknown
	case l.state == leaseEnding:
		return 0, renewEnding
	case l.remaining > 0 || l.Numbered > c.effective || c.recorded && !l.renewed:
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
	c.extend(now, l)
	if l.next.IsZero() {
		c.schedule(now, l, l.ttl)
	}
	return ttl, Done
}

// Clear wants a checkpoint that takes back all others of a lease, and says that it was renewed.
func (c *Clock) Clear(now time.Time, id int64) {
	l := c.Leases[id]
	if l == nil || l.clears || l.clearing == l.Numbered && l.clearing > c.effective && now.Before(l.asked.Add(c.Retry)) {
		return // or it is on its way
	}
	l.clears = true
	c.clears = append(c.clears, l)
}

// TakeClears decides on a checkpoint of all leases that clear wants one for, and of which there are not too many. One
// is on its way at a time, so that many renewals share one. It returns its number; 0: none.
func (c *Clock) TakeClears(now time.Time) (number uint64, of []Shortening) {
	if len(c.clears) == 0 || c.flying > c.effective && now.Before(c.flew.Add(c.Retry)) {
		return 0, nil
	}
	n := min(len(c.clears), mostCheckpoints)
	c.Number++
	for _, l := range c.clears[:n] {
		if l.clears = false; l.state != leaseGone {
			l.Numbered, l.clearing, l.asked = c.Number, c.Number, now
			of = append(of, Shortening{l.id, 0})
		}
	}
	c.clears = append(c.clears[:0:0], c.clears[n:]...)
	if len(of) == 0 {
		c.Number--
		return 0, nil
	}
	c.flying, c.flew = c.Number, now
	return c.Number, of
}

// TookEffect notes that a checkpoint of this primary took effect. None with a lower number can any
// more.
func (c *Clock) TookEffect(number uint64) { c.effective = max(c.effective, number) }

// Noted notes what a checkpoint in effect says of a lease.
func (c *Clock) Noted(id, remaining int64) {
	if l := c.Leases[id]; l != nil {
		l.remaining = remaining
		l.renewed = l.renewed || remaining == 0
	}
}

// Left tells how much time a lease has; ok is false if this member does not know.
func (c *Clock) Left(now time.Time, id int64) (left time.Duration, ok bool) {
	l := c.Leases[id]
	if l == nil || !c.Acting {
		return 0, false
	}
	return l.expiry.Sub(now), true
}

const (
	// Tick is how often it is looked what is due.
	Tick = 500 * time.Millisecond
	// leaseStall is how late such a check may be. If it is later, this member has stood still, and
	// renewals may wait that it has not seen.
	leaseStall = 2 * Tick
	// leaseGrace is how long a client whose keep-alive is not answered takes to send another one, which it
	// does every 500 ms, with time to spare. A lease is not kept for that in more than mostGraces terms, if none
	// had the time.
	leaseGrace = 2 * time.Second
	mostGraces = 3
	// mostEnds and mostCheckpoints bound what is decided in one look; the rest waits for the next.
	mostEnds, mostCheckpoints = 500, 1000
)

// Shortening is what is left of a lease, in seconds.
type Shortening struct{ ID, Left int64 }

// Decisions is what is due.
type Decisions struct {
	Ends []int64 // leases whose end is to be ordered
	// Checkpoints are to be ordered, with a number.
	Checkpoints []Shortening
	Number      uint64
}

// Due decides what is due now. A renewal that is not settled keeps its lease from ending and from
// being shortened. A lease that ended while this member stood still is given the extension.
func (c *Clock) Due(now time.Time) (out Decisions) {
	last := c.looked
	stalled := now.Sub(last) > leaseStall
	c.looked = now
	var back []*Lease
	for len(c.queue) > 0 && !c.queue[0].at.After(now) && len(out.Ends) < mostEnds && len(out.Checkpoints) < mostCheckpoints {
		l := heap.Pop(&c.queue).(dueItem).lease
		l.queued = false
		if l.state == leaseGone {
			continue
		}
		back = append(back, l)
		switch {
		case l.state == leaseEnding && l.again.After(now), l.state == leaseRuns && l.held > 0:
		case l.state == leaseRuns && l.expiry.After(now):
			c.shorten(now, l, &out)
		case l.state == leaseRuns && stalled && l.expiry.After(last):
			l.expiry = now.Add(c.Extension)
		default:
			l.state, l.again = leaseEnding, now.Add(c.Retry)
			out.Ends = append(out.Ends, l.id)
		}
	}
	for _, l := range back {
		c.push(l)
	}
	return out
}

// shorten decides on a checkpoint of a lease if one is due.
func (c *Clock) shorten(now time.Time, l *Lease, out *Decisions) {
	if l.next.IsZero() || l.next.After(now) {
		return
	}
	left := int64(math.Ceil(l.expiry.Sub(now).Seconds()))
	c.schedule(now, l, min(left, l.ttl))
	if left >= l.ttl {
		return // renewed a moment ago
	}
	if out.Number == 0 {
		c.Number++
		out.Number = c.Number
	}
	l.Numbered = out.Number
	out.Checkpoints = append(out.Checkpoints, Shortening{l.id, left})
}

// dueItem is a lease in the queue: nothing is due before at.
type dueItem struct {
	at    time.Time
	lease *Lease
}

// dueQueue is a heap.
type dueQueue []dueItem

func (q dueQueue) Len() int           { return len(q) }
func (q dueQueue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q dueQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *dueQueue) Push(x any)        { *q = append(*q, x.(dueItem)) }

func (q *dueQueue) Pop() any {
	last := len(*q) - 1
	item := (*q)[last]
	(*q)[last] = dueItem{}
	*q = (*q)[:last]
	return item
}
