package paper

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Day is work that changes: phases, one after the other on the same cluster. Clients of one phase end after the answers
// to their last requests, while those of the next one have begun.
type Day struct {
	Phases []Phase
	Length time.Duration // of each phase
	// After is the time from the begin of a phase from which on its figures count. It is below Length.
	After time.Duration
	// Every is the length of the timeline's windows, Part is the part of the experiment that shows them, with x in
	// seconds. Phases are at x = 1 … of the experiment itself.
	Every time.Duration
	Part  string
}

// Phase is the load of a part of a day. Its clients work in closed loops.
type Phase struct {
	Name    string
	Clients int
	At      []int // numbers of the members, from 1 on, over which the clients are distributed; nil: all members
	// Sizes are the bytes of a command's value, one of them drawn for each command. From bodyFrom on it is a body.
	Sizes []int
	Blind float64 // share of blind commands, which are answered when they are accepted
	Net   string  // replaces Setup.Net; empty: it does not
	// Burst, if not 0, is for how long the clients work before they rest for as long.
	Burst time.Duration
	// Wave: the number of active clients rises from one to all and falls to one again within the phase, as a cosine.
	Wave bool
}

// bodyFrom is the size from which on a value is a body, as in braid's server.
const bodyFrom = 16 << 10

// timeline is the part of the experiment that shows the timeline of some work; empty: it has none.
func (w *Work) timeline() string {
	switch {
	case w.Faults != nil:
		return w.Faults.Part
	case w.Day != nil:
		return w.Day.Part
	}
	return ""
}

// phases is the number of phases; 0: it is no day.
func (w *Work) phases() int {
	if w.Day == nil {
		return 0
	}
	return len(w.Day.Phases)
}

// active returns how many clients work at a time since the begin of the phase.
func (p *Phase) active(at, length time.Duration) int {
	switch {
	case p.Burst > 0 && at/p.Burst%2 == 1:
		return 0
	case p.Wave:
		share := (1 - math.Cos(2*math.Pi*at.Seconds()/length.Seconds())) / 2
		return 1 + int(share*float64(p.Clients-1)+0.5)
	}
	return p.Clients
}

// largest is the size of the largest value.
func (d *Day) largest() (size int) {
	for i := range d.Phases {
		size = max(size, slices.Max(d.Phases[i].Sizes))
	}
	return size
}

// day runs all phases. What the cluster makes of its profile meanwhile is left to it.
func (t *braidTarget) day(ctx context.Context, w Work) (Sample, error) {
	if _, err := t.arrange(ctx, &w); err != nil {
		return nil, err
	}
	h := newDayLoad(t, w.Day, t.sent)
	watch := watchChanges(t, h.began)
	err := h.run(ctx)
	changes := watch.stop()
	err = errors.Join(err, t.emulate(""), t.settle(ctx, h))
	if err == nil {
		err = t.meet(ctx)
	}
	if err != nil {
		return nil, err
	}
	t.wrong = append(t.wrong, h.judge(t.members)...)
	t.moments, t.marks = h.moments(changes), append(w.Day.marks(), changes...)
	return h.whole(changes, len(t.wrong)), nil
}

// meet is converge for members that may have changed their protocol, and with it how many of them lead.
func (t *braidTarget) meet(ctx context.Context) error {
	return t.convergeBy(ctx, func(context.Context) (node, error) { return t.members[0].node, nil })
}

// marks are the begins of the phases.
func (d *Day) marks() (marks []Mark) {
	for i := range d.Phases {
		marks = append(marks, Mark{X: (time.Duration(i) * d.Length).Seconds(), Part: d.Part, Phase: true,
			Text: fmt.Sprintf("%d: %s", i+1, d.Phases[i].Name)})
	}
	return marks
}

// moments builds the timeline, and the figures of each phase.
func (h *dayLoad) moments(changes []Mark) (all []Moment) {
	d := h.day
	end := time.Duration(len(d.Phases)) * d.Length
	perSecond := make([]float64, int(end/d.Every))
	for i := range h.done {
		if at := int(h.done[i].at / d.Every); at < len(perSecond) {
			perSecond[at] += 1 / d.Every.Seconds()
		}
	}
	for i, v := range perSecond {
		all = append(all, Moment{At: (time.Duration(i)*d.Every + d.Every/2).Seconds(), Part: d.Part,
			Sample: Sample{Throughput: v}})
	}
	for i := range d.Phases {
		from := time.Duration(i) * d.Length
		took := latenciesOf(h.done, func(a *answered) bool { return a.at >= from+d.After && a.at < from+d.Length })
		early := latenciesOf(h.done, func(a *answered) bool { return a.at >= from && a.at < from+d.After })
		s := Sample{Throughput: float64(len(took)) / (d.Length - d.After).Seconds(),
			FromBegin: float64(len(took)+len(early)) / d.Length.Seconds(), Changes: 0}
		s.addLatencies(took)
		for _, c := range changes {
			if c.X >= from.Seconds() && c.X < (from+d.Length).Seconds() {
				s[Changes]++
			}
		}
		all = append(all, Moment{At: float64(i + 1), Sample: s})
	}
	return all
}

// whole returns the figures of the whole day.
func (h *dayLoad) whole(changes []Mark, wrong int) Sample {
	seconds := (time.Duration(len(h.day.Phases)) * h.day.Length).Seconds()
	s := Sample{Throughput: float64(len(h.done)) / seconds, Changes: float64(len(changes)), Wrong: float64(wrong),
		Failed: float64(len(h.failed))}
	s.addLatencies(all(h.done))
	return s
}
