package fit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
)

// What a change must gain, and for how long something lasts before it is acted on.
const (
	leastGain = 1.2 // a change must gain more
	// With fewer commands a second and fewer in progress, nothing is compared.
	leastRate, leastInside = 5, 0.5

	nearlyBest = 0.95 // of the best one's throughput is as good, if the change is less effort
	minute     = 60   // seconds of writes that a leader follows

	gainLasts = 10 * time.Second
	rests     = 30 * time.Second // after a change
	idleLasts = 6                // times as long as a gain, if instances have nothing to do
	lossLasts = 0.3              // of that, if all wait for a member that is missing or slow
)

// Fitter decides, with patience, which change to make. The zero value is ready. It is a pure rule; not safe for
// concurrent use.
type Fitter struct {
	Patience Patience
	// Weigh, if set, may replace what the model says of each candidate, the active one first, before the best one is
	// chosen: Throughput and Excluded. The simulator sets it, to try changes that no load asks for.
	Weigh func(v *View, costs []Cost)
	// Mutant is a rule to break on purpose.
	Mutant mutant.Name

	state
}

// Patience are the times of a fitter. Those that are 0 have their defaults.
type Patience struct {
	// Lasts is for how long a gain of 20 % lasts without a break before the change is made, for how long a new leader
	// watches first, and for how long a change is measured; 10 s.
	Lasts  time.Duration
	Waits  time.Duration // after a change: until it is measured, and another one may be made; 30 s
	Avoids time.Duration // for how long what was taken back is not tried again, the first time; 10 min
}

func (p *Patience) lasts() time.Duration  { return cmp.Or(p.Lasts, gainLasts) }
func (p *Patience) loss() time.Duration   { return time.Duration(lossLasts * float64(p.lasts())) }
func (p *Patience) waits() time.Duration  { return cmp.Or(p.Waits, rests) }
func (p *Patience) avoids() time.Duration { return cmp.Or(p.Avoids, avoidFor) }

// state is what a fitter knows of the time before.
type state struct {
	running bool
	began   time.Duration
	version uint64 // of the profile
	shape   shape
	changed time.Duration // when the last change was seen, if resting
	resting bool

	load    *load // blended
	waiting []waiting
	links   []learned
	recent  []sample
	writes  []writes
	lasting []lasting
	issued  *issued
	trial   *trial
	past    []past
	said    string
	favored protocol.MemberID // the leader that was wished for in the step before; 0: none was
}

// lasting is since when something holds without a break.
type lasting struct {
	key   string
	since time.Duration
	seen  time.Duration // the last step in which it did
	lost  float64       // seconds of throughput that were lost by not having it: a half of each at twice the throughput
}

// Step takes in what is known now. It is called once a second on the member that leads the global log; a member that
// begins to lead begins with a new Fitter.
func (f *Fitter) Step(v *View) Decision {
	if v.Mode != protocol.FitAdvise && v.Mode != protocol.FitOn {
		f.state = state{}
		return Decision{}
	}
	if !f.running {
		f.begin(v)
	}
	raw := measure(v)
	f.follow(v)
	f.observe(v, raw)
	all := f.options(v)
	var d Decision
	for i := range all {
		d.Costs = append(d.Costs, all[i].Cost)
	}
	d.Avoids = v.avoided(all)
	wanted, event := f.want(v, all)
	d.Event = event
	f.favored = 0
	if wanted == nil {
		f.said = ""
		return d
	}
	f.favored = wanted.wish.Leader
	d.Wish = wanted.wish
	if f.Mutant == MutantAnyVersion {
		d.Wish.Version = 0
	}
	d.Waits = f.waits(v, wanted)
	f.announce(v, wanted, &d)
	return d
}

// begin begins with what the profile says of earlier leaders: a change may have to be measured.
func (f *Fitter) begin(v *View) {
	f.state = state{running: true, began: v.Now, version: v.Profile.Version, shape: shapeOf(v)}
	t, at, ok := readTrial(avoidText(v), f.shape)
	ago := time.Duration(v.Wall-1000*at) * time.Millisecond
	if ok && ago >= 0 && ago < f.Patience.waits()+2*f.Patience.lasts() && f.Mutant != MutantForgets {
		f.trial = &trial{issued: t, since: v.Now - ago}
	}
}

// options are all candidates, the active profile first.
func (f *Fitter) options(v *View) []option {
	all := compare(v, f.load, f.learnedBy(f.load), f.favored)
	f.recall(v, all)
	if f.Weigh != nil {
		weigh(v, all, f.Weigh)
	}
	if f.Mutant != MutantForgets {
		exclude(v, all)
	}
	order(all)
	return all
}

// wanted is a wish with how patient it is.
type wanted struct {
	wish     *Wish
	shape    shape // with which the log continues
	key      string
	patience time.Duration
}

// waits says what a wish waits for; "": nothing.
func (f *Fitter) waits(v *View, w *wanted) string {
	since, lasts, waits := f.last(w.key, v.Now), f.Patience.lasts(), f.Patience.waits()
	left := func(d time.Duration) time.Duration { return d.Truncate(time.Second) }
	switch gone := v.missing(); {
	case v.Changing:
		return "another change is in progress"
	case v.Now-f.began < lasts:
		return fmt.Sprintf("this leader has watched for %s of %s", left(v.Now-f.began), lasts)
	case w.shape == f.shape && v.Now-f.began < waits: // it may have been handed over itself
		return fmt.Sprintf("this leader leads for %s of %s", left(v.Now-f.began), waits)
	case f.rest(v) > 0:
		return fmt.Sprintf("the last change is less than %s ago: %s to go", waits, left(f.rest(v)+time.Second-1))
	case f.trial != nil && !w.wish.Restores && !w.wish.TakesBack:
		return fmt.Sprintf("it is measured first how much the change to %s gained", f.trial.called)
	case gone != "" && !w.wish.Restores && f.Mutant != MutantAnyMember:
		return gone + " is missing"
	case v.Now-since < w.patience:
		return fmt.Sprintf("it holds for %s of %s", left(v.Now-since),
			(w.patience + time.Second - 1).Truncate(time.Second))
	}
	return ""
}

// missing names the first voter that is not present; "": all are.
func (v *View) missing() string {
	for i := range v.Members {
		if m := &v.Members[i]; !m.Present {
			return m.called()
		}
	}
	return ""
}

// rest is how long the fitter leaves things as they are after a change, its own or another one.
func (f *Fitter) rest(v *View) (left time.Duration) {
	waits := f.Patience.waits()
	if f.Mutant == MutantHasty {
		return 0
	}
	if f.resting {
		left = f.changed + waits - v.Now
	}
	if f.issued != nil {
		left = max(left, f.issued.at+waits-v.Now)
	}
	if since := v.Profile.Since; since > 0 && v.Profile.Version > 1 && v.Wall >= since {
		if ago := v.Wall - since; ago < waits.Milliseconds() {
			left = max(left, waits-time.Duration(ago)*time.Millisecond)
		}
	}
	return left
}

// last is since when a key lasts.
func (f *Fitter) last(key string, now time.Duration) time.Duration {
	if l := f.held(key); l != nil {
		return l.since
	}
	return now
}

// held is what is known of a key that lasts; nil: it does not.
func (f *Fitter) held(key string) *lasting {
	for i := range f.lasting {
		if f.lasting[i].key == key {
			return &f.lasting[i]
		}
	}
	return nil
}

// hold notes that something holds now, which would gain as much; 0: that is not what it is for.
func (f *Fitter) hold(key string, now time.Duration, gain float64) {
	l := f.held(key)
	if l == nil {
		f.lasting = append(f.lasting, lasting{key: key, since: now, seen: now})
		return
	}
	l.lost += (now - l.seen).Seconds() * lostBy(gain)
	l.seen = now
}

// lostBy is the part of the possible throughput that is lost without a change that gains as much.
func lostBy(gain float64) float64 {
	if gain <= 1 {
		return 0
	}
	return 1 - 1/gain
}

// patience is for how long a gain lasts before the change is made: until as much is lost as by a gain of leastGain in
// the usual time, but half of that at least.
func (f *Fitter) patience(key string, gain float64, now time.Duration) time.Duration {
	lasts, lasted, lost := f.Patience.lasts(), time.Duration(0), 0.0
	if l := f.held(key); l != nil {
		lasted, lost = now-l.since, l.lost
	}
	left := max(0, lasts.Seconds()*lostBy(leastGain)-lost)
	return max(lasts/2, lasted+time.Duration(share(left, lostBy(gain))*float64(time.Second)))
}

// release drops what does not hold any more.
func (f *Fitter) release(now time.Duration) {
	f.lasting = slices.DeleteFunc(f.lasting, func(l lasting) bool { return l.seen != now })
}

// announce fills in the event of a wish, once, and notes that it is carried out.
func (f *Fitter) announce(v *View, w *wanted, d *Decision) {
	name := w.wish.Describe(v.name(w.wish.Leader))
	if d.Waits != "" {
		return
	}
	if d.Acts = v.Mode == protocol.FitOn; d.Acts {
		f.issue(v, w, name)
	}
	said := string(v.Mode) + " " + name
	if d.Event != "" || said == f.said {
		return
	}
	f.said = said
	verb := "changes to "
	switch {
	case !d.Acts:
		verb = "advises "
	case w.wish.TakesBack:
		verb = "takes back: returns to "
	}
	d.Event = verb + name + ": " + w.wish.Reason
}

// issue notes that a wish is carried out now.
func (f *Fitter) issue(v *View, w *wanted, name string) {
	f.issued = &issued{at: v.Now, shape: w.shape, leader: w.wish.Leader, from: f.shape, called: name,
		promised: w.wish.Gain, takesBack: w.wish.TakesBack, restores: w.wish.Restores,
		before: f.meanSince(f.last(w.key, v.Now)),
		key:    w.shape.key()}
	if m := f.load.ailing(); m != nil {
		f.issued.ailing = m.ID
	}
	f.lasting = nil
	note := ""
	switch {
	case w.wish.Restores: // the more often, the longer it takes until the log comes back to it
		note = avoidNext(avoidText(v), f.shape.key(), v.Wall, f.Patience.waits())
	case f.issued.measurable():
		note = writeTrial(avoidText(v), f.issued, v.Wall)
	default:
		return
	}
	set := map[string]string{}
	maps.Copy(set, w.wish.Settings)
	set[common.FitAvoid.Name] = note
	w.wish.Settings = set
}

// name is what a member is called, "" for 0.
func (v *View) name(id protocol.MemberID) string {
	for i := range v.Members {
		if v.Members[i].ID == id && id != leaderOf(v) {
			return v.Members[i].called()
		}
	}
	return ""
}

func avoidText(v *View) string { return common.FitAvoid.In(v.Profile.Values) }
