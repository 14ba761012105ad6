package leaseclock

import (
	"math"
	"time"
)

// Shortening is the rest of a lease, in seconds; 0: the lease was renewed, and no checkpoint limits it.
type Shortening struct{ ID, Left int64 }

// checkpoints are those that the primary lessor decided under its claim. They are numbered. One has no effect after one
// with a greater number.
type checkpoints struct {
	// number of the newest checkpoint that was decided. effective is the greatest number of one that took effect.
	number, effective uint64
	// clears are leases to be cleared. flying is the number of the newest checkpoint that clears, and flew when it was
	// decided.
	clears []*Lease
	flying uint64
	flew   time.Time
}

// checkpoint is the state of a lease's checkpoints.
type checkpoint struct {
	next time.Time // when one is due; zero: never
	// newest is the number of the newest one with this lease, clearing that of the newest one that clears the others,
	// asked when that was decided.
	newest, clearing uint64
	asked            time.Time
	clears           bool // the lease is in checkpoints.clears
}

// begin begins a term.
func (p *checkpoints) begin(effective uint64, sameClaim bool) {
	number := effective
	if sameClaim {
		number = max(p.number, effective)
	}
	*p = checkpoints{number: number, effective: effective, flew: p.flew}
}

// schedule plans a checkpoint if enough is left of the lease, in seconds.
func (c *Clock) schedule(now time.Time, l *Lease, left int64) {
	l.checkpoint.next = time.Time{}
	if seconds(left) > c.Checkpoint {
		l.checkpoint.next = now.Add(c.Checkpoint)
	}
}

// shorten decides on a checkpoint of a lease if one is due.
func (c *Clock) shorten(now time.Time, l *Lease, out *Decisions) {
	if l.checkpoint.next.IsZero() || l.checkpoint.next.After(now) {
		return
	}
	left := int64(math.Ceil(l.expiry.Sub(now).Seconds()))
	c.schedule(now, l, min(left, l.ttl))
	if left >= l.ttl {
		return // renewed a moment ago
	}
	c.addShortening(l, left, out)
}

func (c *Clock) addShortening(l *Lease, left int64, out *Decisions) {
	if out.Number == 0 {
		c.checkpoints.number++
		out.Number = c.checkpoints.number
	}
	l.checkpoint.newest = out.Number
	out.Checkpoints = append(out.Checkpoints, Shortening{l.id, left})
}

// Shorten decides on a checkpoint of a lease that exists, with the rest of its time in seconds, before one is due.
func (c *Clock) Shorten(id, left int64) (out Decisions) {
	c.addShortening(c.leases[id], left, &out)
	return out
}

// Clear asks for a checkpoint that clears all others of a lease, and records that it was renewed.
func (c *Clock) Clear(now time.Time, id int64) {
	l := c.leases[id]
	if l == nil || l.checkpoint.clears {
		return
	}
	k := &l.checkpoint
	if k.clearing == k.newest && k.clearing > c.checkpoints.effective && now.Before(k.asked.Add(c.Retry)) {
		return // it was ordered a moment ago
	}
	k.clears = true
	c.checkpoints.clears = append(c.checkpoints.clears, l)
}

// NextClears decides on a checkpoint of the leases that Clear was called for, up to mostCheckpoints. One is in progress
// at a time, so that many renewals share one. It returns its number; 0: none.
func (c *Clock) NextClears(now time.Time) (number uint64, of []Shortening) {
	p := &c.checkpoints
	if len(p.clears) == 0 || p.flying > p.effective && now.Before(p.flew.Add(c.Retry)) {
		return 0, nil
	}
	n := min(len(p.clears), mostCheckpoints)
	p.number++
	for _, l := range p.clears[:n] {
		if l.checkpoint.clears = false; l.state != gone {
			l.checkpoint.newest, l.checkpoint.clearing, l.checkpoint.asked = p.number, p.number, now
			of = append(of, Shortening{l.id, 0})
		}
	}
	p.clears = append(p.clears[:0:0], p.clears[n:]...)
	if len(of) == 0 {
		p.number--
		return 0, nil
	}
	p.flying, p.flew = p.number, now
	return p.number, of
}

// TookEffect notes that a checkpoint of this primary took effect. None with a lower number can any more.
func (c *Clock) TookEffect(number uint64) {
	c.checkpoints.effective = max(c.checkpoints.effective, number)
}

// Checkpointed notes the rest of a lease, in seconds, by a checkpoint in effect; 0: it was renewed.
func (c *Clock) Checkpointed(id, remaining int64) {
	if l := c.leases[id]; l != nil {
		l.remaining = remaining
		l.past.renewed = l.past.renewed || remaining == 0
	}
}
