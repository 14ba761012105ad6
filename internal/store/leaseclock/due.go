package leaseclock

import (
	"container/heap"
	"time"
)

// mostEnds and mostCheckpoints bound what one call of Due decides; the rest waits for the next.
const mostEnds, mostCheckpoints = 500, 1000

// Decisions are what is due.
type Decisions struct {
	Ends []int64 // leases whose end is to be ordered
	// Checkpoints are to be ordered, with a number.
	Checkpoints []Shortening
	Number      uint64
}

// Due decides what is due now. A renewal that is not resolved keeps its lease from ending and from
// being shortened. A lease that expired while this member stood still gets the extension.
func (c *Clock) Due(now time.Time) (out Decisions) {
	last := c.looked
	c.looked = now
	var back []*Lease
	for len(c.queue) > 0 && !c.queue[0].at.After(now) && len(out.Ends) < mostEnds &&
		len(out.Checkpoints) < mostCheckpoints {
		l := heap.Pop(&c.queue).(dueItem).lease
		l.queued = false
		if l.state == gone {
			continue
		}
		back = append(back, l)
		c.decide(now, last, l, &out)
	}
	for _, l := range back {
		c.push(l)
	}
	return out
}

// decide moves a lease that is not gone to its next state.
func (c *Clock) decide(now, last time.Time, l *Lease, out *Decisions) {
	if l.state == running {
		switch stalled := now.Sub(last) > leaseStall; {
		case l.holds > 0:
			return
		case l.expiry.After(now):
			c.shorten(now, l, out)
			return
		case stalled && l.expiry.After(last):
			l.expiry = now.Add(c.Extension)
			return
		}
	} else if l.again.After(now) {
		return
	}
	l.state, l.again = ending, now.Add(c.Retry)
	out.Ends = append(out.Ends, l.id)
}

func (c *Clock) push(l *Lease) {
	if !l.queued {
		l.queued = true
		heap.Push(&c.queue, dueItem{l.due(), l})
	}
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
