package order

import "slices"

// queue is a list that grows at its end and shrinks at both. It keeps its memory, so that items cost no allocation.
type queue[T any] struct {
	// items[:head] are removed, and zero.
	items []T
	head  int
}

// keepMemory is the number of items for which an empty queue keeps space.
const keepMemory = 4096

func (q *queue[T]) len() int    { return len(q.items) - q.head }
func (q *queue[T]) at(i int) *T { return &q.items[q.head+i] }

// grow makes space for n more items at the end: if at least half of the memory is before the head, the items move to
// the front.
func (q *queue[T]) grow(n int) {
	if len(q.items)+n > cap(q.items) && q.head > q.len() {
		left := copy(q.items, q.items[q.head:])
		clear(q.items[left:])
		q.items, q.head = q.items[:left], 0
	}
	q.items = slices.Grow(q.items, n)
}

func (q *queue[T]) push(items ...T) {
	q.grow(len(items))
	q.items = append(q.items, items...)
}

// drop removes the first n items.
func (q *queue[T]) drop(n int) {
	clear(q.items[q.head : q.head+n])
	if q.head += n; q.head < len(q.items) {
		return
	}
	if q.items, q.head = q.items[:0], 0; cap(q.items) > keepMemory {
		q.items = nil
	}
}

// cut keeps only the first n items.
func (q *queue[T]) cut(n int) {
	clear(q.items[q.head+n:])
	q.items = q.items[:q.head+n]
}
