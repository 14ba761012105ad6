package paper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/braidlog/braid"
)

// Faults are the crashes while clients work: a follower is killed and restarted, then the leader is killed and
// perhaps restarted. Times count from the start of the clients' work. They are in order, and before Work.For. Down
// and Back are 0 if no follower is killed, and Return is 0 if the leader stays dead.
type Faults struct {
	Down, Back, Lead, Return time.Duration
	// Every is the length of the timeline's windows, Part is the part of the experiment that shows them, with x in
	// seconds.
	Every time.Duration
	Part  string
}

// Moment has the measurements of a run in one window of its time.
type Moment struct {
	At     float64 // the middle of the window, in seconds; or the number of a phase
	Part   string  // of the experiment; empty: the experiment's own
	Sample Sample
}

// narrator is a Target whose runs may have a timeline.
type narrator interface {
	// Moments is that of the last run, Marks are the events on it.
	Moments() []Moment
	Marks() []Mark
}

// Moments implements [narrator].
func (t *braidTarget) Moments() []Moment { return t.moments }

// Marks implements [narrator].
func (t *braidTarget) Marks() []Mark { return t.marks }

// clientele is a set of clients, in closed loops or at a rate.
type clientele interface {
	// within returns the answers between two times, counted from the clients' start.
	within(from, to time.Duration) []answered
	stop()
	// wait returns the number of commands that took effect, after all stopped clients have ended.
	wait(ctx context.Context) (uint64, error)
	count() uint64
}

// startClients starts the clients of some work, and returns their start time.
func startClients(w Work, to []proposer, first uint64) (clientele, time.Time) {
	if w.Rate > 0 {
		f := startFlow(w, to, first)
		return f, f.began
	}
	l := startLoops(w, to, first)
	return l, l.began
}

// faults runs clients while members are killed.
func (t *braidTarget) faults(ctx context.Context, w Work) (Sample, error) {
	leader, err := t.arrange(ctx, &w)
	if err != nil {
		return nil, err
	}
	var homes []proposer
	for i := range t.members {
		homes = append(homes, &home{t.members, i})
	}
	c, began := startClients(w, homes, t.sent)
	dead, err := t.strike(ctx, began.Add(settleTime), w.Faults, leader)
	if err == nil {
		err = sleepUntil(ctx, began.Add(settleTime+w.For))
	}
	c.stop()
	for _, m := range dead {
		err = errors.Join(err, t.start(m))
	}
	if err = errors.Join(err, t.settle(ctx, c)); err != nil {
		return nil, err
	}
	s := t.tell(w, c.within(settleTime, settleTime+w.For))
	if f, ok := c.(*flow); ok {
		s[Failed] = float64(f.failed.Load())
	}
	return s, t.converge(ctx)
}

// strike kills and restarts members. It returns those that are dead at the end.
func (t *braidTarget) strike(ctx context.Context, began time.Time, f *Faults,
	leader *member) (dead []*member, err error) {
	if f.Back > 0 {
		if dead, err = t.knock(ctx, began, t.others(leader)[0], f.Down, f.Back); err != nil {
			return dead, err
		}
	}
	if err := sleepUntil(ctx, began.Add(f.Lead)); err != nil {
		return nil, err
	}
	if s := leader.node.Status(); !s.IsLeader() {
		return nil, errors.New("the leader changed before it was killed")
	}
	return t.knock(ctx, began, leader, f.Lead, f.Return)
}

// knock kills a member at one time and restarts it at another, if that is not 0. It returns the member if it is dead.
func (t *braidTarget) knock(ctx context.Context, began time.Time, m *member, down,
	back time.Duration) (dead []*member, err error) {
	if err := sleepUntil(ctx, began.Add(down)); err != nil {
		return nil, err
	}
	dead = []*member{m}
	if err := m.stop(); err != nil || back == 0 {
		return dead, err
	}
	if err := sleepUntil(ctx, began.Add(back)); err != nil {
		return dead, err
	}
	return nil, t.start(m)
}

// tell builds the timeline, and returns figures of the whole run.
func (t *braidTarget) tell(w Work, done []answered) Sample {
	f := w.Faults
	rates := func(from, to time.Duration) Sample {
		n, blind := 0.0, 0.0
		for i := range done {
			if at := done[i].at - settleTime; at < from || at >= to {
				continue
			}
			n++
			if done[i].blind {
				blind++
			}
		}
		seconds := (to - from).Seconds()
		return Sample{Throughput: n / seconds, BlindRate: blind / seconds, PlainRate: (n - blind) / seconds}
	}
	t.moments, t.marks = nil, nil
	for from := time.Duration(0); from+f.Every <= w.For; from += f.Every {
		t.moments = append(t.moments, Moment{(from + f.Every/2).Seconds(), f.Part, rates(from, from+f.Every)})
	}
	s := rates(0, cmp.Or(f.Down, f.Lead))
	s.addAnswers(done, &w)
	if f.Back > 0 {
		s[OneDown] = rates(f.Down, f.Back)[Throughput]
		s[OneDownPause] = ms(pause(done, f.Down+settleTime, f.Back+settleTime, true, true))
	}
	without := cmp.Or(f.Return, w.For) // the leader is dead until then
	s[PlainPause], s[BlindPause] = ms(pause(done, f.Lead+settleTime, without+settleTime, true, false)),
		ms(pause(done, f.Lead+settleTime, without+settleTime, false, true))
	if resumed := f.Lead + time.Duration(s[PlainPause]*float64(time.Millisecond)) + f.Every; resumed+f.Every <= without {
		s[NewLeader] = rates(resumed, without)[Throughput]
	}
	if f.Return > 0 {
		s[LeaderPause], s[BackPause] = s[PlainPause], ms(pause(done, f.Return+settleTime, w.For+settleTime, true, true))
	}
	return s
}

// pause is the longest time between from and to without an answer of the given kinds.
func pause(done []answered, from, to time.Duration, plain, blind bool) (longest time.Duration) {
	at := []time.Duration{from, to}
	for i := range done {
		if d := &done[i]; d.at > from && d.at < to && (d.blind && blind || !d.blind && plain) {
			at = append(at, d.at)
		}
	}
	slices.Sort(at)
	for i := range at[1:] {
		longest = max(longest, at[i+1]-at[i])
	}
	return longest
}

// home is a client's proposer: its member, or while that is stopped the next running one.
type home struct {
	members []*member
	first   int
}

// ProposeWithAsync implements [proposer].
func (h *home) ProposeWithAsync(command, body []byte, o braid.ProposeOptions, done func(any, error)) error {
	for i := range h.members {
		if n := h.members[(h.first+i)%len(h.members)].door.running(); n != nil {
			return n.ProposeWithAsync(command, body, o, done)
		}
	}
	return fmt.Errorf("no member of %d runs", len(h.members))
}

// door is a client's view of a member that may be stopped at any time.
type door struct {
	mu   sync.Mutex
	open node // nil while it is stopped
}

func (d *door) set(n node) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = n
}

func (d *door) running() node {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open
}
