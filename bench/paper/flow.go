package paper

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// flowInflight is the default of Work.Inflight.
	flowInflight = 100_000
	// flowPause is the interval at which a sender sends the commands that are due.
	flowPause = 200 * time.Microsecond
	// flowSettle is the time for which commands flow before they count.
	flowSettle = 300 * time.Millisecond
	// flowSenders is the number of senders to one proposer.
	flowSenders = 2
)

// flow sends commands for a time at a rate, whether or not the cluster keeps up.
func (t *braidTarget) flow(ctx context.Context, w Work) (Sample, error) {
	leader, err := t.arrange(ctx, &w)
	if err != nil {
		return nil, err
	}
	to := t.proposers(leader, w.At)
	if t.setup.HTTP {
		to = newWebCallers(&w, t.bases())
		defer hangUp(to)
	}
	f := startFlow(w, to, t.sent)
	s, err := t.measureFlow(ctx, f, leader)
	f.stop()
	if err = errors.Join(err, t.settle(ctx, f)); err != nil {
		return nil, err
	}
	return s, t.converge(ctx)
}

func (t *braidTarget) measureFlow(ctx context.Context, f *flow, leader *member) (Sample, error) {
	if err := sleepUntil(ctx, f.began.Add(flowSettle)); err != nil {
		return nil, err
	}
	from, answered := time.Since(f.began), f.answered()
	before, err := t.read(ctx, leader)
	if err != nil {
		return nil, err
	}
	if err := sleepUntil(ctx, f.began.Add(from+f.work.For)); err != nil {
		return nil, err
	}
	to, n := time.Since(f.began), float64(f.answered()-answered)
	after, err := t.read(ctx, leader)
	if err != nil {
		return nil, err
	}
	s := Sample{Throughput: n / (to - from).Seconds()}
	if !t.sameLeaders(&before, &after) {
		return nil, errLeaderChanged
	}
	if n > 0 {
		s.addAnswers(f.within(from, to), &f.work)
		s.addCosts(&before, &after, n, to-from)
	}
	return s, t.weigh(ctx, s, leader)
}

// flow is an open loop. As in the paper, commands that become due while too many are in progress are dropped.
type flow struct {
	work    Work
	first   uint64
	began   time.Time
	next    atomic.Uint64 // commands sent
	quit    chan struct{}
	senders []*flowSender
	members int // the receivers, in turn
	wg      sync.WaitGroup
	failure atomic.Pointer[error]
	// tolerant flows continue after failed commands, which are counted.
	tolerant bool
	failed   atomic.Int64
}

// flowSender sends its share of the commands to one proposer.
type flowSender struct {
	f      *flow
	to     proposer
	number int
	due    int64 // commands that were due: sent or dropped
	sent   int64 // ≤ due
	// done counts answered commands; ≤ sent.
	done  atomic.Int64
	count func(any, error)
	every int64 // the distance of timed commands

	timed answers
	mix   mix
	pace  flowPace
}

// flowPace spaces a sender's commands evenly: the first is due at offset. Both are in nanoseconds since the flow
// began.
type flowPace struct{ interval, offset float64 }

// at is the time when a command is due, counted from 0.
func (p flowPace) at(command int64) time.Duration {
	return time.Duration(p.offset + float64(command)*p.interval)
}

// due is the number of commands that are due after a given time.
func (p flowPace) due(after time.Duration) int64 {
	if float64(after) < p.offset {
		return 0
	}
	return int64((float64(after)-p.offset)/p.interval) + 1
}

func startFlow(w Work, to []proposer, first uint64) *flow {
	f := &flow{work: w, first: first, began: time.Now(), quit: make(chan struct{}), members: len(to),
		tolerant: w.Faults != nil}
	n := len(to)
	if n == 1 {
		n = flowSenders
	}
	for i := range n {
		s := &flowSender{f: f, to: to[i%len(to)], number: i, mix: w.mix(i, len(to))}
		s.every = max(1, int64(w.Rate*w.For.Seconds())/int64(4*timed))
		if f.tolerant {
			s.every = 1 // all of them are needed to measure pauses
		}
		s.count = func(_ any, err error) { s.answer(err) }
		f.senders = append(f.senders, s)
	}
	for _, s := range f.senders {
		f.wg.Go(s.run)
	}
	return f
}

func (s *flowSender) answer(err error) {
	if err != nil {
		s.f.fail(err)
	}
	s.done.Add(1)
}

// fail records a command that failed.
func (f *flow) fail(err error) {
	f.failed.Add(1)
	if !f.tolerant {
		f.failure.CompareAndSwap(nil, &err)
	}
}

// run sends due commands until the flow ends.
func (s *flowSender) run() {
	n := len(s.f.senders)
	interval := float64(time.Second) / s.f.work.Rate * float64(n)
	s.pace = flowPace{interval, interval * float64(s.number) / float64(n)}
	room := int64(max(1, cmp.Or(s.f.work.Inflight, flowInflight)/n))
	command := make([]byte, max(8, cmp.Or(s.f.work.Payload, defaultPayload)))
	tick := time.NewTicker(flowPause)
	defer tick.Stop()
	for {
		select {
		case <-s.f.quit:
			return
		case <-tick.C:
		}
		due := s.pace.due(time.Since(s.f.began))
		if free := room - (s.sent - s.done.Load()); due-s.due > free {
			s.due = due - max(free, 0) // the oldest others are dropped
		}
		if err := s.send(due, command); err != nil {
			s.f.failure.CompareAndSwap(nil, &err)
			return
		}
	}
}

// send sends all commands up to due.
func (s *flowSender) send(due int64, command []byte) error {
	if due <= s.due {
		return nil
	}
	some := uint64(due - s.due)
	number := s.f.first + s.f.next.Add(some) - some
	for ; s.due < due; s.due++ {
		done, options := s.count, s.mix.next(command)
		if s.due%s.every == 0 {
			done = s.timer(s.pace.at(s.due), options.Blind)
		}
		binary.LittleEndian.PutUint64(command, number)
		number++
		s.sent++
		if err := s.to.ProposeWithAsync(command, nil, options, done); err != nil && s.f.tolerant {
			s.answer(err)
		} else if err != nil {
			return fmt.Errorf("a command was refused: %w", err)
		}
	}
	return nil
}

// timer measures the latency of a command that was due at a given time.
func (s *flowSender) timer(due time.Duration, blind bool) func(any, error) {
	return func(_ any, err error) {
		now := time.Since(s.f.began)
		if err == nil {
			s.timed.add(answered{at: now, took: now - due, blind: blind, member: s.number % s.f.members})
		}
		s.answer(err)
	}
}

func (f *flow) answered() (n int64) {
	for _, s := range f.senders {
		n += s.done.Load()
	}
	return n
}

// within returns the answers between two times, of the timed commands.
func (f *flow) within(from, to time.Duration) (some []answered) {
	for _, s := range f.senders {
		some = append(some, s.timed.within(from, to)...)
	}
	return some
}

// stop ends the sending of commands.
func (f *flow) stop() { close(f.quit) }

// count is the number of commands that were sent, or refused.
func (f *flow) count() uint64 { return f.next.Load() }

// wait returns the number of commands that took effect, after all commands before the stop are answered.
func (f *flow) wait(ctx context.Context) (uint64, error) {
	f.wg.Wait()
	ctx, cancel := context.WithTimeout(ctx, stallTimeout)
	defer cancel()
	for {
		if err := f.failure.Load(); err != nil {
			return 0, fmt.Errorf("a command failed: %w", *err)
		}
		left := -f.answered()
		for _, s := range f.senders {
			left += s.sent
		}
		if left == 0 {
			return uint64(f.answered() - f.failed.Load()), nil
		}
		if err := sleepUntil(ctx, time.Now().Add(time.Millisecond)); err != nil {
			return 0, fmt.Errorf("%d commands are not answered: %w", left, err)
		}
	}
}
