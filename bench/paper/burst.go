package paper

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid"
)

// proposer is the part of a cluster that a burst uses.
type proposer interface {
	ProposeWithAsync(command, body []byte, o braid.ProposeOptions, done func(result any, err error)) error
}

// burst is one run of a Work: when each request was sent and when it was answered.
type burst struct {
	work    Work
	to      []proposer // clients and requests are distributed over them
	command []byte
	bodies  bodies
	first   uint64 // number of the first command
	began   time.Time
	// every is the distance of timed requests, so that a large burst does not mostly read the clock. sent, end and done
	// are of these: the time when a request was due, and when it was answered.
	every     int
	sent, end []time.Duration
	done      []func(any, error)
	plain     func(any, error) // for the others
	left      atomic.Int64
	all       chan struct{} // closed when all are answered
	failure   atomic.Pointer[error]
	answers   []chan struct{} // of closed loops, by client
	last      braid.BodyRef   // of the last request, if it had a body; valid after run
}

const (
	defaultPayload = 16
	// timed is the approximate number of timed requests in a burst.
	timed = 5000
	// stallTimeout bounds a whole run.
	stallTimeout = time.Minute
)

func newBurst(w Work, to []proposer, first uint64) *burst {
	b := &burst{
		work: w, to: to, first: first, bodies: newBodies(w.Body),
		command: make([]byte, max(8, cmp.Or(w.Payload, defaultPayload))),
		every:   max(1, w.Requests/timed), all: make(chan struct{}),
	}
	b.left.Store(int64(w.Requests))
	b.plain = func(_ any, err error) { b.answered(0, err) }
	for i := 0; i < w.Requests; i += b.every {
		b.done = append(b.done, func(result any, err error) {
			if ref, ok := result.(braid.BodyRef); ok && i == w.Requests-1 {
				b.last = ref
			}
			b.end[i/b.every] = time.Since(b.began)
			b.answered(i, err)
		})
	}
	b.sent, b.end = make([]time.Duration, len(b.done)), make([]time.Duration, len(b.done))
	for range w.Clients {
		b.answers = append(b.answers, make(chan struct{}, 1))
	}
	if w.Clients > 0 && b.every > 1 {
		panic("paper: clients that wait have all their requests timed")
	}
	return b
}

func (b *burst) answered(i int, err error) {
	if err != nil {
		b.failure.CompareAndSwap(nil, &err)
	}
	if len(b.answers) > 0 {
		b.answers[i%len(b.answers)] <- struct{}{}
	}
	if b.left.Add(-1) == 0 {
		close(b.all)
	}
}

// run sends all requests and waits for their answers.
func (b *burst) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stallTimeout)
	defer cancel()
	b.began = time.Now()
	var err error
	if len(b.answers) > 0 {
		err = b.closedLoops(ctx)
	} else {
		err = b.open(ctx)
	}
	if err != nil {
		return err
	}
	select {
	case <-b.all:
	case <-ctx.Done():
		return fmt.Errorf("%d of %d requests are not answered: %w", b.left.Load(), b.work.Requests, ctx.Err())
	}
	if err := b.failure.Load(); err != nil {
		return fmt.Errorf("a request failed: %w", *err)
	}
	return nil
}

// open sends requests without waiting for answers, at once or at a rate. The latency of a request counts from when it
// was due.
func (b *burst) open(ctx context.Context) error {
	command := slices.Clone(b.command)
	for i := range b.work.Requests {
		due := time.Duration(-1)
		if b.work.Rate > 0 {
			due = time.Duration(float64(i) / b.work.Rate * float64(time.Second))
			if err := sleepUntil(ctx, b.began.Add(due)); err != nil {
				return err
			}
		}
		if err := b.send(i, due, command); err != nil {
			return err
		}
	}
	return nil
}

// send proposes request i, which was due at a given time; negative: now.
func (b *burst) send(i int, due time.Duration, command []byte) error {
	done := b.plain
	if i%b.every == 0 {
		if due < 0 {
			due = time.Since(b.began)
		}
		b.sent[i/b.every], done = due, b.done[i/b.every]
	}
	binary.LittleEndian.PutUint64(command, b.first+uint64(i))
	to := i
	if n := len(b.answers); n > 0 {
		to = i % n // a client keeps to its member
	}
	if err := b.to[to%len(b.to)].ProposeWithAsync(command, b.bodies.of(i), braid.ProposeOptions{}, done); err != nil {
		return fmt.Errorf("request %d was refused: %w", i+1, err)
	}
	return nil
}

// closedLoops runs clients that send a request after the answer to the last one. Request i belongs to client i mod
// Clients.
func (b *burst) closedLoops(ctx context.Context) error {
	errs := make([]error, len(b.answers))
	var clients sync.WaitGroup
	for c, answer := range b.answers {
		clients.Go(func() {
			command := slices.Clone(b.command)
			for i := c; i < b.work.Requests; i += len(b.answers) {
				if errs[c] = b.send(i, -1, command); errs[c] != nil {
					return
				}
				select {
				case <-answer:
				case <-ctx.Done():
					errs[c] = ctx.Err()
					return
				}
			}
		})
	}
	clients.Wait()
	return errors.Join(errs...)
}

// sleepUntil returns at a given time or a little later: requests that became due meanwhile leave together, as with
// many clients on one machine.
func sleepUntil(ctx context.Context, t time.Time) error {
	d := time.Until(t)
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// latencies returns the latencies of the timed requests, ascending.
func (b *burst) latencies() []time.Duration {
	l := make([]time.Duration, len(b.end))
	for i := range l {
		l[i] = b.end[i] - b.sent[i]
	}
	slices.Sort(l)
	return l
}

// quantile returns a quantile of ascending values: the smallest that this share of them does not exceed.
func quantile(v []time.Duration, q float64) time.Duration {
	if len(v) == 0 {
		return 0
	}
	i := int(q*float64(len(v))+0.999999) - 1
	return v[min(max(i, 0), len(v)-1)]
}

// bodies are the large values that a run writes: pieces of the same random bytes, which are never changed and differ
// between successive requests.
type bodies struct {
	random []byte
	size   int
}

// bodyShift is the offset between the pieces.
const (
	bodyShift  = 64
	bodyShifts = 64
)

func newBodies(size int) bodies {
	if size == 0 {
		return bodies{}
	}
	b := bodies{random: make([]byte, size+bodyShift*bodyShifts), size: size}
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b.random)
	return b
}

// of returns the body of a request, nil if there is none.
func (b *bodies) of(i int) []byte {
	if b.size == 0 {
		return nil
	}
	at := i % bodyShifts * bodyShift
	return b.random[at : at+b.size : at+b.size]
}
