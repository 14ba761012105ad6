package event

import "time"

// Event is a scheduled event. Events at the same instant happen in the order in which they were scheduled.
type Event struct {
	At  time.Duration
	Seq uint64 // the number of events that were scheduled before, plus 1
	Do  func()
}

func (e *Event) before(o *Event) bool { return e.At < o.At || e.At == o.At && e.Seq < o.Seq }

// Queue is a binary heap of events, the next one first. The zero value is empty.
type Queue struct {
	heap []Event
	seq  uint64
}

// Push schedules do at a time.
func (q *Queue) Push(at time.Duration, do func()) {
	q.seq++
	q.heap = append(q.heap, Event{at, q.seq, do})
	i := len(q.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !q.heap[i].before(&q.heap[up]) {
			break
		}
		q.heap[i], q.heap[up] = q.heap[up], q.heap[i]
		i = up
	}
}

// Due reports whether there is an event up to a time.
func (q *Queue) Due(until time.Duration) bool { return len(q.heap) > 0 && q.heap[0].At <= until }

// Pop removes and returns the next event; the queue must not be empty.
func (q *Queue) Pop() Event {
	top := q.heap[0]
	last := len(q.heap) - 1
	q.heap[0] = q.heap[last]
	q.heap[last] = Event{}
	q.heap = q.heap[:last]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < last; c++ {
			if q.heap[c].before(&q.heap[least]) {
				least = c
			}
		}
		if least == i {
			return top
		}
		q.heap[i], q.heap[least] = q.heap[least], q.heap[i]
		i = least
	}
}
