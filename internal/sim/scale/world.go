package scale

import (
	"math/rand/v2"
	"time"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/sim/event"
	"github.com/braidlog/braid/protocol"
)

// world has the simulated time and the scheduled events.
type world struct {
	cfg   Config
	costs Costs // including the factor
	steps Steps // likewise, of the protocol
	rng   *rand.Rand
	meter *meter // nil unless costs are measured

	now    time.Duration
	events event.Queue

	machines []*machine
	members  []*node
	tally    tally
	// from and to bound the measured time. Simulated time began at origin.
	origin, from, to time.Duration
	command          []byte // all commands have the same bytes
	came             int64  // completed commands

	protocol *registry.Protocol
	begin    order.Cursor
	leaders  protocol.Leaders
	elected  int // the leader if none is preferred

	err error // the first error
}

// after schedules do, d from now.
func (w *world) after(d time.Duration, do func()) { w.events.Push(w.now+max(d, 0), do) }

// run runs all events up to a time.
func (w *world) run(until time.Duration) {
	for w.events.Due(until) {
		e := w.events.Pop()
		w.now = e.At
		e.Do()
	}
	w.now = until
}

// note records an error. None may happen here.
func (w *world) note(err error) {
	if w.err == nil {
		w.err = err
	}
}

// time returns the current time.
func (w *world) time() time.Duration { return w.now }

// counts reports whether the current time is in the measured time.
func (w *world) counts() bool { return w.now > w.from && w.now <= w.to }

// machine has a number of cores, and the threads that wait for one.
type machine struct {
	w     *world
	idle  int
	ready fifo[*thread] // in the order in which they get a core
	busy  time.Duration // of all cores, in the measured time
}

func (w *world) machine(cores int) *machine {
	m := &machine{w: w, idle: cores}
	w.machines = append(w.machines, m)
	return m
}

// thread does work when it is woken. It gets a core, works for the cost of the work, and then publishes the results.
type thread struct {
	m    *machine
	name string
	// work takes the thread's waiting work and returns its cost. finish publishes the results.
	work   func() spend
	finish func()
	end    func() // endTurn, bound only once

	state threadState
	again bool // woken while running
	took  time.Duration
	busy  time.Duration // in the measured time
}

type threadState uint8

const (
	asleep threadState = iota
	waking             // asleep, and soon ready
	ready
	running
)

func (m *machine) thread(name string, work func() spend, finish func()) *thread {
	t := &thread{m: m, name: name, work: work, finish: finish}
	t.end = t.endTurn
	return t
}

// wake schedules a turn of the thread soon.
func (t *thread) wake() {
	switch t.state {
	case asleep:
		t.state = waking
		t.m.w.after(time.Duration(t.m.w.costs.Wake), t.enqueue)
	case running:
		t.again = true
	}
}

func (t *thread) enqueue() {
	t.state = ready
	t.m.ready.push(t)
	t.m.dispatch()
}

func (m *machine) dispatch() {
	for m.idle > 0 && m.ready.len() > 0 {
		t := m.ready.pop()
		m.idle--
		t.state = running
		cost := t.work()
		cost.on(m.w.costs.Turn, 0, 0)
		t.took = cost.duration()
		m.w.after(t.took, t.end)
	}
}

func (t *thread) endTurn() {
	m := t.m
	if m.w.counts() {
		t.busy += t.took
		m.busy += t.took
	}
	t.finish()
	t.state = asleep
	m.idle++
	if t.again { // it is still awake
		t.again, t.state = false, ready
		m.ready.push(t)
	}
	m.dispatch()
}

// fifo is a queue that reuses its memory.
type fifo[T any] struct {
	items []T
	head  int
}

func (f *fifo[T]) len() int { return len(f.items) - f.head }

func (f *fifo[T]) push(v T) {
	if f.head > 64 && f.head > f.len() {
		f.items = f.items[:copy(f.items, f.items[f.head:])]
		f.head = 0
	}
	f.items = append(f.items, v)
}

func (f *fifo[T]) pop() T {
	var zero T
	v := f.items[f.head]
	f.items[f.head] = zero
	f.head++
	return v
}
