package paper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/braidlog/braid"
)

// Faults are what befalls the members while clients work: a follower is killed and comes back, then the
// leader is killed. Times count from when the clients' work does. They are in order, and before Work.For.
type Faults struct {
	Down, Back, Lead time.Duration
	// Every is how long the windows of the timeline are, Part is the part of the experiment that shows them,
	// with x in seconds.
	Every time.Duration
	Part  string
}

// Moment is what a run measured in one window of its time.
type Moment struct {
	At     float64 // the middle of the window, in seconds
	Sample Sample
}

// narrator is a Target whose runs with faults have a timeline.
type narrator interface {
	// Moments is that of the last run.
	Moments() []Moment
}

// Moments implements [narrator].
func (t *braidTarget) Moments() []Moment { return t.moments }

// faults lets clients work while members are killed.
func (t *braidTarget) faults(ctx context.Context, w Work) (Sample, error) {
	leader, err := t.arrange(ctx, &w)
	if err != nil {
		return nil, err
	}
	var homes []proposer
	for i := range t.members {
		homes = append(homes, &home{t.members, i})
	}
	l := startLoops(w, homes, t.sent)
	dead, err := t.strike(ctx, l.began.Add(settleTime), w.Faults, leader)
	if err == nil {
		err = sleepUntil(ctx, l.began.Add(settleTime+w.For))
	}
	l.stop()
	for _, m := range dead {
		err = errors.Join(err, t.start(m))
	}
	if err = errors.Join(err, t.settle(ctx, l)); err != nil {
		return nil, err
	}
	s := t.tell(w, l.within(settleTime, settleTime+w.For))
	return s, t.converge(ctx)
}

// strike kills members and has one come back. It returns those that are dead at the end.
func (t *braidTarget) strike(ctx context.Context, began time.Time, f *Faults, leader *member) (dead []*member, err error) {
	follower := t.others(leader)[0]
	if err := sleepUntil(ctx, began.Add(f.Down)); err != nil {
		return nil, err
	}
	if err := follower.stop(); err != nil {
		return []*member{follower}, err
	}
	if err := sleepUntil(ctx, began.Add(f.Back)); err != nil {
		return []*member{follower}, err
	}
	if err := t.start(follower); err != nil {
		return nil, err
	}
	if err := sleepUntil(ctx, began.Add(f.Lead)); err != nil {
		return nil, err
	}
	if s := leader.node.Status(); !s.IsLeader() {
		return nil, errors.New("the leader changed before it was killed")
	}
	return []*member{leader}, leader.stop()
}

// tell makes the timeline, and returns figures of the whole run.
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
	t.moments = nil
	for from := time.Duration(0); from+f.Every <= w.For; from += f.Every {
		t.moments = append(t.moments, Moment{(from + f.Every/2).Seconds(), rates(from, from+f.Every)})
	}
	s := rates(0, f.Down)
	s.addAnswers(done, &w)
	s[OneDown] = rates(f.Down, f.Back)[Throughput]
	s[OneDownPause] = ms(pause(done, f.Down+settleTime, f.Back+settleTime, true, true))
	end := w.For + settleTime
	s[PlainPause], s[BlindPause] = ms(pause(done, f.Lead+settleTime, end, true, false)), ms(pause(done, f.Lead+settleTime, end, false, true))
	if resumed := f.Lead + time.Duration(s[PlainPause]*float64(time.Millisecond)) + f.Every; resumed+f.Every <= w.For {
		s[NewLeader] = rates(resumed, w.For)[Throughput]
	}
	return s
}

// pause is the longest time between two instants in which nothing was answered of what is asked for.
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

// home is where a client proposes: at its member, or while that is stopped at the next one that runs.
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

// door is what clients find of a member that may be stopped meanwhile.
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
