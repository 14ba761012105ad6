package fit

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
)

// sample is the load of one second, or the mean of some.
type sample struct {
	at                        time.Duration
	rate, inside, body, blind float64
	by                        []part
}

// part is how many commands of a member are in progress.
type part struct {
	id     protocol.MemberID
	inside float64
}

// speed is how many commands a second come of one in progress. Unlike the rate it also shows what a change gained if
// clients ask for the same rate as before.
func (s *sample) speed() float64 { return share(s.rate, s.inside) }

// issued is a wish that is being carried out.
type issued struct {
	at                  time.Duration
	shape, from         shape
	leader              protocol.MemberID
	called, key         string
	promised            float64
	takesBack, restores bool
	before              sample
	ailing              protocol.MemberID // the member that was missing or slow before; 0: none was
}

// measurable reports whether the change is one of the profile that promised a gain.
func (i *issued) measurable() bool {
	return i.shape != i.from && !i.takesBack && !i.restores && i.promised > leastGain
}

// trial is a change that was made and is to be measured.
type trial struct {
	issued
	since time.Duration // when it was made
}

// past is what was measured under a shape and a leader.
type past struct {
	shape  shape
	leader protocol.MemberID
	at     time.Duration
	sample sample
}

// learned is what a member's links carried when they were full, in bytes a second of the model.
type learned struct {
	id    protocol.MemberID
	bytes float64
	at    time.Duration
}

const (
	alike      = 1.3              // loads are comparable within this factor
	mixed      = 0.3              // and if shares of sizes, of blind commands and of members differ by less
	rememberIt = 10 * time.Minute // what links carry, and what was measured
)

// observe takes in a second's load.
func (f *Fitter) observe(v *View, raw *load) {
	f.linger(raw)
	s, w := raw.sampled(v.Now)
	raw.blend(f.load)
	raw.judge()
	f.load = raw
	if raw.lacking != "" || v.Changing {
		return
	}
	f.recent = append(f.recent, s)
	for v.Now-f.recent[0].at >= f.Patience.lasts() {
		f.recent = f.recent[1:]
	}
	f.writes = tail(append(f.writes, w), minute)
	m := newModel(raw, shapeOf(v), nil)
	for i := range raw.members {
		if u := &raw.members[i].used; u.full() && m.full[m.at(link, i)] > 0 {
			f.learn(learned{raw.members[i].ID, m.full[m.at(link, i)], v.Now})
		}
	}
}

// sampled is the load of this second alone: a mean with earlier seconds would compare a change with another load.
func (l *load) sampled(now time.Duration) (s sample, w writes) {
	s = sample{at: now, rate: l.rate, inside: l.inside}
	bytes := 0.0
	for i := range l.members {
		m := &l.members[i]
		bytes, s.body, s.blind = bytes+m.bytes, s.body+m.body, s.blind+m.rate*m.blind
		s.by = append(s.by, part{m.ID, m.inside})
		w.of = append(w.of, ofMember{m.ID, m.rate})
	}
	s.body, s.blind = share(s.body, bytes), share(s.blind, s.rate)
	return s, w
}

// waiting is what one report says of a member's links.
type waiting struct {
	id          protocol.MemberID
	out, queued float64
}

// linger leaves of what waits for links only what has waited in all of the last reports, and of what was sent the mean.
func (f *Fitter) linger(raw *load) {
	for i := range raw.members {
		m := &raw.members[i]
		if m.reported {
			f.waiting = append(f.waiting, waiting{m.ID, m.used.out, m.used.queued})
		}
		n, out := 0, 0.0
		for _, w := range slices.Backward(f.waiting) {
			if w.id == m.ID && n < fullReports {
				n, out, m.used.queued = n+1, out+w.out, min(m.used.queued, w.queued)
			}
		}
		if m.used.out = share(out, float64(n)); n < fullReports {
			m.used.queued = 0
		}
	}
	f.waiting = tail(f.waiting, fullReports*len(raw.members))
}

// tail is the end of a list.
func tail[T any](all []T, n int) []T { return all[max(0, len(all)-n):] }

func (f *Fitter) learn(k learned) {
	kept := f.links[:0]
	for _, o := range f.links {
		if o.id == k.id && k.at-o.at < rememberIt { // another load may have filled them better
			k.bytes = max(k.bytes, o.bytes)
		}
		if o.id != k.id && k.at-o.at < rememberIt {
			kept = append(kept, o)
		}
	}
	f.links = append(kept, k)
}

// learnedBy is what links of each member carried, 0: it is not known.
func (f *Fitter) learnedBy(l *load) []float64 {
	out := make([]float64, len(l.members))
	for i := range l.members {
		for _, k := range f.links {
			if k.id == l.members[i].ID {
				out[i] = k.bytes
			}
		}
	}
	return out
}

// mean is that of the newest samples.
func (f *Fitter) mean() sample { return mean(f.recent) }

// meanSince is that of the samples from a time on, of all if there are none: those before may be of another load.
func (f *Fitter) meanSince(at time.Duration) sample {
	first := slices.IndexFunc(f.recent, func(s sample) bool { return s.at >= at })
	if first < 0 {
		first = 0 // this second has none
	}
	return mean(f.recent[first:])
}

func mean(recent []sample) (s sample) {
	n := float64(len(recent))
	if n == 0 {
		return s
	}
	for _, r := range recent {
		s.rate, s.inside = s.rate+r.rate/n, s.inside+r.inside/n
		s.body, s.blind = s.body+r.body/n, s.blind+r.blind/n
	}
	last := recent[len(recent)-1]
	for i := range last.by {
		p := part{id: last.by[i].id}
		for _, r := range recent {
			for _, q := range r.by {
				if q.id == p.id {
					p.inside += q.inside / n
				}
			}
		}
		s.by = append(s.by, p)
	}
	return s
}

// like reports whether two loads can be compared: clients ask for the same mix, and either as many commands are in
// progress or the rate is the same.
func (s *sample) like(o *sample) bool {
	within := func(a, b float64) bool { return a > 0 && b > 0 && a <= alike*b && b <= alike*a }
	if !within(s.inside, o.inside) && !within(s.rate, o.rate) {
		return false
	}
	apart := 0.0
	for _, p := range s.by {
		if len(o.by) == 0 { // another leader has measured it
			break
		}
		q := 0.0
		for _, other := range o.by {
			if other.id == p.id {
				q = other.inside
			}
		}
		apart += math.Abs(share(p.inside, s.inside)-share(q, o.inside)) / 2
	}
	return apart < mixed && math.Abs(s.body-o.body) < mixed && math.Abs(s.blind-o.blind) < mixed
}

// follow notices that the profile, or what it says, has changed, and by whom.
func (f *Fitter) follow(v *View) {
	now := shapeOf(v)
	if v.Changing {
		return
	}
	same := v.Profile.Version == f.version && now == f.shape
	late := f.issued != nil && v.Now-f.issued.at >= f.Patience.waits()
	ours := f.issued != nil && now == f.issued.shape && now != f.shape
	switch {
	case same && late:
		f.giveUp()
		return
	case same:
		return
	case f.issued != nil && !ours && !late:
		f.version = v.Profile.Version // the change has several steps
		return
	}
	if now != f.shape && f.load.ailing() == nil { // with a member that is slow it says little of other times
		before := f.mean()
		if ours {
			before = f.issued.before
		}
		f.past = append(tail(f.past, 7), past{f.shape, leaderOf(v), v.Now, before})
	}
	f.trial = nil
	if ours && f.issued.measurable() {
		f.trial = &trial{issued: *f.issued, since: v.Now}
	}
	f.issued, f.lasting, f.recent = nil, nil, nil
	f.version, f.shape, f.changed, f.resting = v.Profile.Version, now, v.Now, true
}

// giveUp forgets a wish that was not carried out in time, so that the same change by an operator is not taken for it.
// A change that could not be taken back is not measured again.
func (f *Fitter) giveUp() {
	if f.issued.takesBack {
		f.trial = nil
	}
	f.issued = nil
}

// judge measures a change some time after it was made, and takes it back if it did not gain half of what it promised,
// and does not for some seconds more: it takes as long until a member is known to be slow.
func (f *Fitter) judge(v *View) (w *wanted, event string) {
	t := f.trial
	if t == nil || v.Now-t.since < f.Patience.waits() {
		return nil, ""
	}
	after, ailing := f.mean(), f.load.ailing()
	switch {
	case v.Mode != protocol.FitOn:
		f.trial = nil
		return nil, ""
	case ailing != nil && ailing.ID != t.ailing:
		f.trial = nil
		return nil, fmt.Sprintf("the change to %s is not measured: %s", t.called, ailing.problem())
	case len(f.recent) > 2 && !after.like(&t.before):
		f.trial = nil
		return nil, fmt.Sprintf("the change to %s stays: the load is another one, so it is not measured", t.called)
	case v.Now-t.since < f.Patience.waits()+f.Patience.lasts(), v.Now-f.began < f.Patience.lasts():
		return nil, ""
	}
	gained := share(after.speed(), t.before.speed())
	text := fmt.Sprintf("of %.2f times the throughput that %s promised, %.2f were measured", t.promised, t.called, gained)
	if gained-1 >= (t.promised-1)/2 {
		f.trial = nil
		return nil, "the change stays: " + text
	}
	set := t.from.settings(&f.shape)
	if set == nil {
		set = map[string]string{}
	}
	set[common.FitAvoid.Name] = avoidNext(avoidText(v), t.key, v.Wall, f.Patience.avoids())
	wish := &Wish{Candidate: Candidate{Protocol: t.from.protocol, Settings: set}, Version: v.Profile.Version,
		Gain: share(1, gained), Reason: text, TakesBack: true}
	return &wanted{wish: wish, shape: t.from, key: "back", patience: f.Patience.lasts() / 2}, ""
}

// recall bounds what the model says of a candidate by what was measured under it with a load like today's.
func (f *Fitter) recall(v *View, all []option) {
	now := f.mean()
	for i := range all[1:] {
		o := &all[1+i]
		for _, p := range f.past {
			if p.shape != o.shape || o.Leader != p.leader && o.shape.led() || v.Now-p.at > rememberIt ||
				!p.sample.like(&now) || o.Excluded != "" {
				continue
			}
			if gain := p.sample.speed() / share(f.load.rate, f.load.inside); gain > 0 && gain < o.gain {
				o.gain, o.Throughput = gain, gain*all[0].Throughput
				o.Latency, o.Limit = share(f.load.inside, o.Throughput), "measured before"
			}
		}
	}
}
