package store

import (
	"container/heap"
	"math"
	"time"
)

// leaseClock decides when leases end. Every member has one, but only the primary lessor's counts.
// It reads no clock and does not wait: callers tell it the time, in order. The rules and why they
// hold are in docs/internals/leases.md.
type leaseClock struct {
	extension  time.Duration // what a new primary adds to every lease
	checkpoint time.Duration // how often what is left of a long lease is ordered
	retry      time.Duration // after which what was wanted, and did not happen, is wanted again

	leases map[int64]*timed

	// Of every member, about the term of the newest claim (see claimed):

	began time.Time // when this member applied the claim; zero: it did not
	// whole: this member applied everything since the claim. recorded: the primary records renewals, that is, it
	// answers one only when the state says that the lease was renewed in this term.
	whole, recorded bool

	// Of the primary lessor:

	acting bool
	claim  uint64   // the position of the claim
	queue  dueQueue // of leases, by when something is due at the earliest
	// number is the number of the newest checkpoint that was decided under the claim. effective is
	// the greatest number of one that took effect; no checkpoint with a lower number can take
	// effect any more.
	number, effective uint64
	looked            time.Time // when due was last called
	// clears are leases to be cleared. flying is the number of the newest checkpoint that clears, and flew when it
	// was decided.
	clears []*timed
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

// timed is a lease and its time. The clock knows nothing of users: who may renew a lease is decided before
// (see Renewal).
type timed struct {
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
	// numbered is the number of the newest checkpoint with this lease, clearing that of the
	// newest one that takes the others back, asked when that was decided.
	numbered, clearing uint64
	asked              time.Time
	clears             bool // it is among those that are to be cleared
	queued             bool
}

// due is not later than the next time at which something must be decided about the lease.
func (l *timed) due() time.Time {
	switch {
	case l.state == leaseEnding:
		return l.again
	case !l.next.IsZero() && l.next.Before(l.expiry):
		return l.next
	}
	return l.expiry
}

func (c *leaseClock) reset() {
	for _, l := range c.leases {
		l.state = leaseGone
	}
	c.leases, c.queue = map[int64]*timed{}, nil
	c.began, c.whole = time.Time{}, false
}

// load adds a lease that was granted before, with what a checkpoint said of it.
func (c *leaseClock) load(id, ttl, remaining int64) *timed {
	l := &timed{id: id, ttl: ttl, remaining: remaining}
	c.leases[id] = l
	return l
}

func (c *leaseClock) granted(now time.Time, id, ttl int64) {
	l := c.load(id, ttl, 0)
	l.latest = now.Add(seconds(ttl) + c.extension)
	if c.acting {
		c.start(now, l, now.Add(seconds(ttl)))
	}
}

func (c *leaseClock) revoked(id int64) {
	if l := c.leases[id]; l != nil {
		l.state = leaseGone
		delete(c.leases, id)
	}
}

// left is the time that a lease has at the beginning of a term, in seconds, if nothing else is known.
func (l *timed) left() int64 {
	if l.remaining > 0 {
		return l.remaining
	}
	return l.ttl
}

// claimed notes that a claim took effect, on every member: a term ends and another one begins. Leases that may have
// been renewed in the term that ends have their full time from now, or what a checkpoint left of it, and the
// extension, because this member does not know when. If the term's renewals were recorded, the others keep
// the time that they had.
func (c *leaseClock) claimed(now time.Time, recorded bool) {
	known := c.whole && c.recorded
	for _, l := range c.leases {
		switch {
		case !known || l.renewed || l.latest.IsZero():
			l.latest, l.graces = now.Add(seconds(l.left())+c.extension), 0
		case l.latest.Before(now.Add(c.grace(l))):
			l.graces++
		}
		l.renewed = false
	}
	c.began, c.whole, c.recorded = now, true, recorded
}

// soon reports whether a term that begins now begins soon after the one before, so that it should be
// recorded. Later than that, checkpoints say what is left of leases.
func (c *leaseClock) soon(now time.Time) bool {
	return !c.began.IsZero() && now.Sub(c.began) < c.checkpoint
}

// grace is the time that a lease has at least when a term begins, so that its client finds the new primary.
func (c *leaseClock) grace(l *timed) time.Duration {
	return c.extension + min(seconds(l.ttl), leaseGrace)
}

// promote begins a term as the primary lessor, with the time that each lease has according to claimed. Of the
// checkpoints under its claim, effective is the number of the newest one in the state; of an earlier term under
// the same claim, those that were decided and are not in the state may still come.
func (c *leaseClock) promote(now time.Time, claim, effective uint64, recorded bool) {
	if claim != c.claim {
		c.number = 0
	}
	c.acting, c.claim, c.effective, c.number, c.looked, c.queue = true, claim, effective, max(c.number, effective), now, nil
	c.recorded, c.clears, c.flying = recorded, nil, 0
	for _, l := range c.leases {
		expiry := l.latest
		if expiry.IsZero() { // it came with a snapshot
			expiry = now.Add(seconds(l.left()) + c.extension)
		}
		if least := now.Add(c.grace(l)); l.graces <= mostGraces && expiry.Before(least) {
			expiry = least
		}
		c.start(now, l, expiry)
	}
}

// demote ends the term: nothing is due any more.
func (c *leaseClock) demote() { c.acting, c.queue = false, nil }

func (c *leaseClock) start(now time.Time, l *timed, expiry time.Time) {
	l.state, l.numbered, l.clearing, l.clears, l.queued, l.expiry = leaseRuns, c.number, 0, false, false, expiry
	c.schedule(now, l, l.left())
	c.push(l)
}

// schedule plans a checkpoint if enough is left of the lease.
func (c *leaseClock) schedule(now time.Time, l *timed, left int64) {
	l.next = time.Time{}
	if seconds(left) > c.checkpoint {
		l.next = now.Add(c.checkpoint)
	}
}

// seconds never exceeds what a Duration holds: leases may be that long.
func seconds(n int64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/int64(2*time.Second))) * time.Second
}

func (c *leaseClock) push(l *timed) {
	if !l.queued {
		l.queued = true
		heap.Push(&c.queue, dueItem{l.due(), l})
	}
}

// hold keeps a lease from ending until release, for a renewal that came, and returns it. It does not extend
// the lease. It returns nil if there is no such lease, or if the renewal does not count because the end
// of the lease is decided.
func (c *leaseClock) hold(id int64) *timed {
	l := c.leases[id]
	if l == nil || !c.acting || l.state != leaseRuns {
		return nil
	}
	l.held++
	return l
}

// release ends what hold began. If the renewal counts, the lease has its full time again, whether the
// renewal was answered or given up, because its client did what it could and may try again. If it was
// refused, the lease has the time that it had.
func (c *leaseClock) release(now time.Time, l *timed, counts bool) {
	l.held--
	if counts {
		c.extend(now, l)
	}
}

func (c *leaseClock) extend(now time.Time, l *timed) {
	if expiry := now.Add(seconds(l.ttl)); l.state == leaseRuns && expiry.After(l.expiry) {
		l.expiry = expiry
	}
}

// verdict is what is to be done with a renewal that was confirmed.
type verdict uint8

const (
	renewDone      verdict = iota
	renewUnknown           // there is no such lease
	renewEnding            // its end was decided: wait for it
	renewShortened         // the lease would be too short under the next primary: order that it was renewed
	renewStale             // the confirmation began too long ago: confirm again
	renewElsewhere         // this member is not the primary lessor
)

// answer decides about a renewal after a confirmation, which began at began, that this member was
// the primary lessor. ttl is what may be promised.
//
// A later primary was promoted after began. It gives the lease its time from then on and the
// extension. So this one may promise that much and no more.
func (c *leaseClock) answer(now, began time.Time, id int64) (ttl int64, v verdict) {
	l := c.leases[id]
	switch {
	case !c.acting:
		return 0, renewElsewhere
	case l == nil:
		return 0, renewUnknown
	case l.state == leaseEnding:
		return 0, renewEnding
	case l.remaining > 0 || l.numbered > c.effective || c.recorded && !l.renewed:
		return 0, renewShortened
	}
	over := now.Sub(began) - c.extension
	ttl = l.ttl
	if over > 0 {
		ttl -= int64(math.Ceil(over.Seconds()))
	}
	if ttl < 1 {
		return 0, renewStale
	}
	c.extend(now, l)
	if l.next.IsZero() {
		c.schedule(now, l, l.ttl)
	}
	return ttl, renewDone
}

// clear wants a checkpoint that takes back all others of a lease, and says that it was renewed.
func (c *leaseClock) clear(now time.Time, id int64) {
	l := c.leases[id]
	if l == nil || l.clears || l.clearing == l.numbered && l.clearing > c.effective && now.Before(l.asked.Add(c.retry)) {
		return // or it is on its way
	}
	l.clears = true
	c.clears = append(c.clears, l)
}

// takeClears decides on a checkpoint of all leases that clear wants one for, and of which there are not too many. One
// is on its way at a time, so that many renewals share one. It returns its number; 0: none.
func (c *leaseClock) takeClears(now time.Time) (number uint64, of []shortening) {
	if len(c.clears) == 0 || c.flying > c.effective && now.Before(c.flew.Add(c.retry)) {
		return 0, nil
	}
	n := min(len(c.clears), mostCheckpoints)
	c.number++
	for _, l := range c.clears[:n] {
		if l.clears = false; l.state != leaseGone {
			l.numbered, l.clearing, l.asked = c.number, c.number, now
			of = append(of, shortening{l.id, 0})
		}
	}
	c.clears = append(c.clears[:0:0], c.clears[n:]...)
	if len(of) == 0 {
		c.number--
		return 0, nil
	}
	c.flying, c.flew = c.number, now
	return c.number, of
}

// tookEffect notes that a checkpoint of this primary took effect. None with a lower number can any
// more.
func (c *leaseClock) tookEffect(number uint64) { c.effective = max(c.effective, number) }

// noted notes what a checkpoint in effect says of a lease.
func (c *leaseClock) noted(id, remaining int64) {
	if l := c.leases[id]; l != nil {
		l.remaining = remaining
		l.renewed = l.renewed || remaining == 0
	}
}

// left tells how much time a lease has; ok is false if this member does not know.
func (c *leaseClock) left(now time.Time, id int64) (left time.Duration, ok bool) {
	l := c.leases[id]
	if l == nil || !c.acting {
		return 0, false
	}
	return l.expiry.Sub(now), true
}

const (
	// leaseTick is how often it is looked what is due.
	leaseTick = 500 * time.Millisecond
	// leaseStall is how late such a check may be. If it is later, this member has stood still, and
	// renewals may wait that it has not seen.
	leaseStall = 2 * leaseTick
	// leaseGrace is how long a client whose keep-alive is not answered takes to send another one, which it
	// does every 500 ms, with time to spare. A lease is not kept for that in more than mostGraces terms, if none
	// had the time.
	leaseGrace = 2 * time.Second
	mostGraces = 3
	// mostEnds and mostCheckpoints bound what is decided in one look; the rest waits for the next.
	mostEnds, mostCheckpoints = 500, 1000
)

// shortening is what is left of a lease, in seconds.
type shortening struct{ id, left int64 }

// look is what is due.
type look struct {
	ends []int64 // leases whose end is to be ordered
	// checkpoints are to be ordered, with a number.
	checkpoints []shortening
	number      uint64
}

// due decides what is due now. A renewal that is not settled keeps its lease from ending and from
// being shortened. A lease that ended while this member stood still is given the extension.
func (c *leaseClock) due(now time.Time) (out look) {
	last := c.looked
	stalled := now.Sub(last) > leaseStall
	c.looked = now
	var back []*timed
	for len(c.queue) > 0 && !c.queue[0].at.After(now) && len(out.ends) < mostEnds && len(out.checkpoints) < mostCheckpoints {
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
			l.expiry = now.Add(c.extension)
		default:
			l.state, l.again = leaseEnding, now.Add(c.retry)
			out.ends = append(out.ends, l.id)
		}
	}
	for _, l := range back {
		c.push(l)
	}
	return out
}

// shorten decides on a checkpoint of a lease if one is due.
func (c *leaseClock) shorten(now time.Time, l *timed, out *look) {
	if l.next.IsZero() || l.next.After(now) {
		return
	}
	left := int64(math.Ceil(l.expiry.Sub(now).Seconds()))
	c.schedule(now, l, min(left, l.ttl))
	if left >= l.ttl {
		return // renewed a moment ago
	}
	if out.number == 0 {
		c.number++
		out.number = c.number
	}
	l.numbered = out.number
	out.checkpoints = append(out.checkpoints, shortening{l.id, left})
}

// dueItem is a lease in the queue: nothing is due before at.
type dueItem struct {
	at    time.Time
	lease *timed
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
