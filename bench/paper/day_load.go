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

// dayLoad is the clients of a day, and the history of their commands.
type dayLoad struct {
	t       *braidTarget
	day     *Day
	first   uint64
	began   time.Time
	next    atomic.Uint64 // requests sent, or refused
	clients sync.WaitGroup
	random  []byte // of which values are pieces

	answers
	placed []placed
	failed []failedCommand
}

// placed is a command that was answered with its position in the order.
type placed struct {
	number, position uint64
	call, end        time.Duration
}

// failedCommand is one that was not answered. It may have taken effect only if that is unknown.
type failedCommand struct {
	number  uint64
	unknown bool
}

func newDayLoad(t *braidTarget, d *Day, first uint64) *dayLoad {
	return &dayLoad{t: t, day: d, first: first, began: time.Now(), random: newBodies(d.largest()).random}
}

// run works through the phases.
func (h *dayLoad) run(ctx context.Context) error {
	for i := range h.day.Phases {
		p := &h.day.Phases[i]
		if err := h.t.emulate(p.Net); err != nil {
			return err
		}
		from, to := time.Duration(i)*h.day.Length, time.Duration(i+1)*h.day.Length
		for k := range p.Clients {
			c := h.newClient(p, i, k, from, to)
			h.clients.Go(c.run)
		}
		if err := sleepUntil(ctx, h.began.Add(to)); err != nil {
			return err
		}
	}
	return nil
}

// count is the number of requests that were sent, or refused.
func (h *dayLoad) count() uint64 { return h.next.Load() }

// stop implements [clientele]: each client ends with its phase.
func (h *dayLoad) stop() {}

// wait returns the number of requests that took effect, after all clients have ended.
func (h *dayLoad) wait(ctx context.Context) (uint64, error) {
	ended := make(chan struct{})
	go func() {
		h.clients.Wait()
		close(ended)
	}()
	ctx, cancel := context.WithTimeout(ctx, stallTimeout)
	defer cancel()
	select {
	case <-ended:
		return uint64(len(h.done)), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("requests are not answered: %w", ctx.Err())
	}
}

// dayClient is one client in one phase.
type dayClient struct {
	*dayLoad
	p        *Phase
	number   int // in the phase
	member   int
	from, to time.Duration // of the phase, since the begin of the day
	random   *rand.Rand
	answer   chan dayAnswer
}

type dayAnswer struct {
	result any
	err    error
}

func (h *dayLoad) newClient(p *Phase, phase, number int, from, to time.Duration) *dayClient {
	c := &dayClient{dayLoad: h, p: p, number: number, from: from, to: to, answer: make(chan dayAnswer, 1),
		random: rand.New(rand.NewPCG(uint64(phase), uint64(number))), member: number % len(h.t.members)}
	if len(p.At) > 0 {
		c.member = p.At[number%len(p.At)] - 1
	}
	return c
}

// run makes one request after the other until the phase ends, while the client is an active one.
func (c *dayClient) run() {
	const rest = 20 * time.Millisecond
	for {
		now := time.Since(c.began)
		switch {
		case now >= c.to:
			return
		case c.number >= c.p.active(now-c.from, c.to-c.from):
			time.Sleep(min(rest, c.to-now))
		case !c.request(now):
			time.Sleep(refusalPause)
		}
	}
}

// request makes one request, and reports whether it was answered.
func (c *dayClient) request(call time.Duration) (ok bool) {
	number := c.first + c.next.Add(1) - 1
	size := c.p.Sizes[c.random.IntN(len(c.p.Sizes))]
	at := c.random.IntN(bodyShifts) * bodyShift
	value := c.dayLoad.random[at : at+size : at+size]
	command, body := binary.LittleEndian.AppendUint64(nil, number), []byte(nil)
	if size >= bodyFrom {
		body = value
	} else {
		command = append(command, value[:max(0, size-len(command))]...)
	}
	var o braid.ProposeOptions
	if c.p.Blind > 0 && c.random.Float64() < c.p.Blind {
		o.Blind, o.Mode = true, braid.ModeAccepted
	}
	err := c.t.members[c.member].node.ProposeWithAsync(command, body, o,
		func(result any, err error) { c.answer <- dayAnswer{result, err} })
	a := dayAnswer{err: err}
	if err == nil {
		a = <-c.answer
	}
	c.note(number, call, o.Blind, &a)
	return a.err == nil
}

// note records how a request ended.
func (c *dayClient) note(number uint64, call time.Duration, blind bool, a *dayAnswer) {
	end := time.Since(c.began)
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.err != nil {
		c.failed = append(c.failed, failedCommand{number, errors.Is(a.err, braid.ErrMaybeCommitted)})
		return
	}
	c.done = append(c.done, answered{at: end, took: end - call, blind: blind, member: c.member})
	if position, ok := a.result.(uint64); ok {
		c.placed = append(c.placed, placed{number, position, call, end})
	}
}

// judge compares the members' applied commands with the history: each command that was answered took effect once, none
// that was refused did, and the order agrees with the order in time of commands that were not concurrent.
func (h *dayLoad) judge(members []*member) (wrong []string) {
	failed := map[uint64]bool{} // whether it is unknown
	for _, f := range h.failed {
		failed[f.number] = f.unknown
	}
	for i, m := range members {
		if n := m.machine.m.Duplicates(); n > 0 {
			wrong = append(wrong, fmt.Sprintf("member %d applied %d commands more than once", i+1, n))
		}
		for n := h.first; n < h.first+h.next.Load(); n++ {
			unknown, missed := failed[n]
			switch has := m.machine.m.Has(n); {
			case !has && !missed:
				wrong = append(wrong, fmt.Sprintf("member %d lacks command %d, which was answered", i+1, n))
			case has && missed && !unknown:
				wrong = append(wrong, fmt.Sprintf("member %d applied command %d, which was refused", i+1, n))
			}
		}
	}
	return append(wrong, misplaced(h.placed)...)
}

// misplaced returns what contradicts one order of all commands in which each takes effect between its call and its
// answer.
func misplaced(all []placed) (wrong []string) {
	slices.SortFunc(all, func(a, b placed) int { return cmp.Compare(a.position, b.position) })
	var after *placed // of the commands behind, the one that was answered first
	for i := len(all) - 1; i >= 0; i-- {
		p := &all[i]
		if i > 0 && all[i-1].position == p.position {
			wrong = append(wrong, fmt.Sprintf("commands %d and %d both have position %d", all[i-1].number, p.number,
				p.position))
		}
		if after != nil && after.end < p.call {
			wrong = append(wrong, fmt.Sprintf("command %d at %d was called after command %d at %d was answered", p.number,
				p.position, after.number, after.position))
		}
		if after == nil || p.end < after.end {
			after = p
		}
	}
	return wrong
}
