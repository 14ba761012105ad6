package paper

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// settleTime is the time for which clients work before the measurement, for the leader to find the active members
	// and to choose a mode of replication.
	settleTime = 600 * time.Millisecond
	// refusalPause is the wait of a client after a refusal.
	refusalPause = 5 * time.Millisecond
)

// window runs clients for a time, with some followers stopped. The absence of answers is a result: all commands are
// resolved when the members are back.
func (t *braidTarget) window(ctx context.Context, w Work) (Sample, error) {
	leader, err := t.arrange(ctx, &w)
	if err != nil {
		return nil, err
	}
	down := t.others(leader)[:w.Down]
	if err := stopAll(down); err != nil {
		return nil, err
	}
	to := t.proposers(leader, w.At)
	if t.setup.HTTP {
		to = newWebClients(&w, t.bases())
		defer hangUp(to)
	}
	l := startLoops(w, to, t.sent)
	s, err := t.measure(ctx, l, leader)
	l.stop()
	for _, m := range down {
		err = errors.Join(err, t.start(m))
	}
	if err = errors.Join(err, t.settle(ctx, l)); err != nil {
		return nil, err
	}
	return s, t.converge(ctx)
}

// settle waits for stopped clients, and records the numbers of sent commands and of those that took effect.
func (t *braidTarget) settle(ctx context.Context, c clientele) error {
	answered, err := c.wait(ctx)
	t.sent += c.count()
	t.applied += answered
	return err
}

// others are the members other than the leader, the farthest of the list first.
func (t *braidTarget) others(leader *member) []*member {
	i := slices.Index(t.members, leader)
	others := slices.Concat(t.members[i+1:], t.members[:i])
	slices.Reverse(others)
	return others
}

// measure reads the counters at both ends of the measured time.
func (t *braidTarget) measure(ctx context.Context, l *loops, leader *member) (Sample, error) {
	if err := sleepUntil(ctx, l.began.Add(settleTime)); err != nil {
		return nil, err
	}
	from := time.Since(l.began)
	before, err := t.read(ctx, leader)
	if err != nil {
		return nil, err
	}
	if err := sleepUntil(ctx, l.began.Add(from+l.work.For)); err != nil {
		return nil, err
	}
	to := time.Since(l.began)
	after, err := t.read(ctx, leader)
	if err != nil {
		return nil, err
	}
	done := l.within(from, to)
	n := float64(len(done))
	seconds := (to - from).Seconds()
	s := Sample{Throughput: n / seconds, Bandwidth: n * float64(l.work.bytes()) / (1 << 20) / seconds}
	if l.work.At != AtLeader && !t.sameLeaders(&before, &after) {
		return nil, errLeaderChanged
	}
	if n > 0 {
		s.addAnswers(done, &l.work)
		s.addCosts(&before, &after, n, to-from)
	}
	return s, t.weigh(ctx, s, leader)
}

func (s Sample) addLatencies(ascending []time.Duration) {
	s[P50], s[P90], s[P99] = ms(quantile(ascending, 0.5)), ms(quantile(ascending, 0.9)), ms(quantile(ascending, 0.99))
}

// converge waits until all members have applied the same number of commands: those that were answered, one more that
// is known to come after them, and perhaps some of unknown outcome.
func (t *braidTarget) converge(ctx context.Context) error {
	return t.convergeBy(ctx, func(ctx context.Context) (node, error) {
		leader, err := t.awaitLeader(ctx)
		if err != nil {
			return nil, err
		}
		return leader.node, nil
	})
}

// convergeBy is converge with the last command proposed at a member that ask returns.
func (t *braidTarget) convergeBy(ctx context.Context, ask func(context.Context) (node, error)) error {
	ctx, cancel := context.WithTimeout(ctx, stallTimeout)
	defer cancel()
	for done := false; !done; {
		n, err := ask(ctx)
		if err != nil {
			return err
		}
		command := binary.LittleEndian.AppendUint64(nil, t.sent)
		t.sent++
		_, err = n.Propose(ctx, command)
		if done = err == nil; !done && ctx.Err() != nil {
			return fmt.Errorf("the members do not come together again: %w", err)
		}
	}
	t.applied++
	for {
		all, err := t.digests()
		if err != nil {
			return err
		}
		behind := slices.ContainsFunc(all, func(d Digest) bool { return d.Count != all[0].Count })
		if !behind && all[0].Count >= t.applied {
			t.applied = all[0].Count
			return nil
		}
		if err := sleepUntil(ctx, time.Now().Add(2*time.Millisecond)); err != nil {
			return fmt.Errorf("of %d commands the members have applied, with their hashes, %d: %w", t.applied, all, err)
		}
	}
}

// loops are clients that send a request after the answer to the last one, until they are stopped. They ignore errors.
type loops struct {
	work    Work
	bodies  bodies
	first   uint64
	began   time.Time
	next    atomic.Uint64 // requests sent, or refused
	quit    chan struct{}
	clients sync.WaitGroup

	answers
}

// answered is a request that took effect, or certainly will.
type answered struct {
	at, took time.Duration
	blind    bool
	member   int // number of the proposer, from 0 on
}

// answers are concurrent lists of answers.
type answers struct {
	mu   sync.Mutex
	done []answered
}

func (a *answers) add(some ...answered) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done = append(a.done, some...)
}

// within returns the answers between two times.
func (a *answers) within(from, to time.Duration) (some []answered) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range a.done {
		if d.at >= from && d.at < to {
			some = append(some, d)
		}
	}
	return some
}

func startLoops(w Work, to []proposer, first uint64) *loops {
	l := &loops{work: w, bodies: newBodies(w.Body), first: first, began: time.Now(), quit: make(chan struct{})}
	for i := range w.Clients {
		l.clients.Go(func() { l.client(i, to) })
	}
	return l
}

// client is one of them, at its member.
func (l *loops) client(number int, members []proposer) {
	at := number % len(members)
	to, mix := members[at], l.work.mix(number, len(members))
	command := make([]byte, max(8, l.work.Payload))
	answer := make(chan error, 1)
	for {
		select {
		case <-l.quit:
			return
		default:
		}
		i := l.next.Add(1) - 1
		binary.LittleEndian.PutUint64(command, l.first+i)
		began := time.Since(l.began)
		options := mix.next(command)
		err := to.ProposeWithAsync(command, l.bodies.of(int(i)), options, func(_ any, err error) { answer <- err })
		if err == nil {
			err = <-answer
		}
		if err == nil {
			now := time.Since(l.began)
			l.add(answered{at: now, took: now - began, blind: options.Blind, member: at})
			continue
		}
		pause := time.NewTimer(refusalPause)
		select {
		case <-l.quit:
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

// stop lets the clients end after the answers to their requests.
func (l *loops) stop() { close(l.quit) }

// count is the number of requests that were sent, or refused.
func (l *loops) count() uint64 { return l.next.Load() }

// wait returns the number of requests that took effect, after all clients have ended.
func (l *loops) wait(ctx context.Context) (uint64, error) {
	ended := make(chan struct{})
	go func() {
		l.clients.Wait()
		close(ended)
	}()
	ctx, cancel := context.WithTimeout(ctx, stallTimeout)
	defer cancel()
	select {
	case <-ended:
		return uint64(len(l.done)), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("requests are not answered: %w", ctx.Err())
	}
}
