package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// window keeps a number of commands of one sender in flight. Its slots are used in turn, so there
// is no allocation and no lock per command.
type window struct {
	*sender
	slots []slot
	head  int // the slot of the next command
	// target is the count of completions at which the sender wants to be woken.
	target atomic.Int64
	wake   chan struct{}
	stall  *time.Timer
	issued int64
	pace   pacer
	stride uint64
}

// slot holds one command in flight.
type slot struct {
	state atomic.Uint32 // slotFree …; after slotSent the rest may be read
	seq   uint64
	start int64 // 0: the latency is not measured
	end   int64
	done  func(any, error)
}

const (
	slotFree uint32 = iota
	slotSent
	slotAcked
	slotFailed
)

func newWindow(s *sender, i int) *window {
	l := &s.g.load
	n := l.Inflight / l.senders()
	if i < l.Inflight%l.senders() {
		n++
	}
	w := &window{
		sender: s, slots: make([]slot, n), wake: make(chan struct{}, 1),
		stall: time.NewTimer(stallTimeout), stride: l.stride(),
	}
	if l.Rate > 0 {
		interval := float64(time.Second) / (l.Rate / float64(l.senders()))
		w.pace = pacer{interval: interval, offset: interval * float64(i) / float64(l.senders())}
	}
	for i := range w.slots {
		sl := &w.slots[i]
		sl.done = func(_ any, err error) { w.complete(sl, err) }
	}
	return w
}

// complete is the cluster's callback for the answer to a command.
func (w *window) complete(sl *slot, err error) {
	if sl.start != 0 {
		sl.end = w.g.now()
	}
	state := slotAcked
	if err != nil {
		w.note(err)
		w.failed.Add(1)
		state = slotFailed
	}
	sl.state.Store(state)
	if w.completed.Add(1) == w.target.Load() {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// run sends commands until the generator stops, and then waits for those in flight.
func (w *window) run(ctx context.Context) error {
	defer w.stall.Stop()
	for !w.g.stop.Load() {
		sl := &w.slots[w.head]
		if sl.state.Load() == slotSent {
			if err := w.await(ctx, max(1, len(w.slots)/8)); err != nil {
				return w.abandon(err)
			}
			continue
		}
		w.harvest(sl)
		if !w.pace.waitUntilDue(w.g.now) {
			continue
		}
		w.send(sl)
	}
	return w.drain(ctx)
}

// send proposes the next command in a free slot.
func (w *window) send(sl *slot) {
	switch {
	case w.pace.interval > 0:
		sl.start = w.pace.due()
	case w.seq%w.stride == 0:
		sl.start = w.g.now()
	default:
		sl.start = 0
	}
	sl.seq = w.seq
	sl.state.Store(slotSent)
	if err := w.g.cluster.ProposeAsync(w.next(), sl.done); err != nil {
		sl.state.Store(slotFree)
		w.refused.Add(1)
		w.note(err)
		time.Sleep(refusalPause)
		return
	}
	w.seq++
	w.issued++
	w.pace.sent++
	if w.head++; w.head == len(w.slots) {
		w.head = 0
	}
}

// harvest takes the result from a slot and frees it.
func (w *window) harvest(sl *slot) {
	switch sl.state.Load() {
	case slotAcked:
		if sl.start != 0 && w.g.measured(sl.end) {
			record(w.hist, sl.end-sl.start)
		}
	case slotFailed:
		w.unknown = append(w.unknown, sl.seq)
	case slotSent:
		panic("harvest of a slot in flight")
	}
	sl.state.Store(slotFree)
}

// await waits until some more commands have completed. It waits for a share of the window and not for one, to be
// woken rarely.
func (w *window) await(ctx context.Context, some int) error {
	completed := w.completed.Load()
	inFlight := w.issued - completed
	if inFlight <= 0 {
		return nil
	}
	target := completed + min(int64(some), inFlight)
	w.target.Store(target)
	if w.completed.Load() >= target {
		return nil
	}
	w.stall.Reset(stallTimeout)
	select {
	case <-w.wake:
		return nil
	case <-w.stall.C:
		if w.completed.Load() > completed {
			return nil
		}
		return fmt.Errorf("gave up: of %d commands in flight none was answered for %v", inFlight, stallTimeout)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drain waits for all commands in flight.
func (w *window) drain(ctx context.Context) error {
	for w.issued > w.completed.Load() {
		if err := w.await(ctx, len(w.slots)); err != nil {
			return w.abandon(err)
		}
	}
	for i := range w.slots {
		w.harvest(&w.slots[i])
	}
	return nil
}

// abandon gives up the commands in flight: they may or may not take effect.
func (w *window) abandon(err error) error {
	for i := range w.slots {
		sl := &w.slots[i]
		if sl.state.Load() == slotSent {
			w.unknown = append(w.unknown, sl.seq)
			continue
		}
		w.harvest(sl)
	}
	return err
}

// pacer spaces commands evenly. With interval 0 there is no pace.
type pacer struct {
	interval float64 // ns
	offset   float64 // ns
	sent     int64
}

// due is when the next command is due, in ns since the generator began; never 0.
func (p *pacer) due() int64 { return int64(p.offset+float64(p.sent)*p.interval) + 1 }

// waitUntilDue waits until the next command is due, by a clock that gives ns. It returns
// false if that was too far ahead: the caller looks whether to stop, and comes again.
func (p *pacer) waitUntilDue(now func() int64) bool {
	if p.interval == 0 {
		return true
	}
	ahead := p.due() - now()
	if ahead <= 0 {
		return true
	}
	const atMost = int64(50 * time.Millisecond)
	time.Sleep(time.Duration(min(ahead, atMost)))
	return ahead <= atMost
}
