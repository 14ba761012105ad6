package fit

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/protocol"
)

// want returns the change that is wished for, nil if none is, and what is to be logged of a change that was measured.
func (f *Fitter) want(v *View, all []option) (w *wanted, event string) {
	if v.Changing {
		f.lasting = nil
		return nil, ""
	}
	defer f.release(v.Now)
	for i := range all[1:] {
		if o := &all[1+i]; o.Excluded == "" && o.gain > leastGain {
			f.hold(o.key(leaderOf(v)), v.Now, o.gain)
		}
	}
	if w = f.restore(v, all); w == nil {
		if w, event = f.judge(v); w != nil {
			f.hold(w.key, v.Now, 0)
		}
		if w != nil || event != "" {
			return w, event
		}
		w = f.gain(v, all)
	}
	if w == nil {
		w = f.follows(v, all)
	}
	if w == nil {
		w = f.idle(v, all)
	}
	if w != nil {
		f.hold(w.key, v.Now, 0)
	}
	return w, ""
}

// gain: a candidate gains enough.
func (f *Fitter) gain(v *View, all []option) *wanted {
	o := choose(all, f.load.leader, func(o *option) bool { return o.gain > leastGain })
	if o == nil {
		return nil
	}
	key := o.key(leaderOf(v))
	return f.wanted(v, o, key, f.patience(key, o.gain, v.Now), f.reason(all, o))
}

func (f *Fitter) wanted(v *View, o *option, key string, patience time.Duration, reason string) *wanted {
	return &wanted{wish: o.wish(v, reason), shape: o.shape, key: key, patience: patience}
}

// reason says in figures why an option is better than the active profile.
func (f *Fitter) reason(all []option, o *option) string {
	now := &all[0]
	text := fmt.Sprintf("%.0f commands/s become %.0f (%.2f times), a command takes %s in place of %s",
		now.Throughput, o.Throughput, o.gain, round(o.Latency), round(now.Latency))
	if now.Limit != roundTrips {
		text += fmt.Sprintf("; now the %s is the limit", now.Limit)
	}
	return text
}

// restore: all wait for a member that is missing or slow. One leader is enough then.
func (f *Fitter) restore(v *View, all []option) *wanted {
	now := &all[0].shape
	ailing := f.load.ailing()
	if now.led() || ailing == nil {
		return nil
	}
	to := now.regrouped()
	if !now.spread {
		to = shape{protocol: raft, instances: 1}
	}
	if to.excluded(v, f.load, now) != "" {
		return nil
	}
	o := choose(all, f.load.leader, func(o *option) bool { return o.shape == to })
	if o == nil { // nothing is known of the load, as nothing may be answered any more
		o = &option{shape: to, leader: -1, gain: 1, Cost: Cost{Candidate: Candidate{Protocol: to.protocol,
			Settings: to.settings(now)}}}
	}
	w := f.wanted(v, o, "restore", f.Patience.loss(), "every command waits for every member, and "+ailing.problem())
	w.wish.Restores = true
	return w
}

// follows: a leader follows its clients. Most writes of the last minute came to one other member or zone, and the way
// to a leader there is at most half as long.
func (f *Fitter) follows(v *View, all []option) *wanted {
	now := &all[0]
	l := f.load
	if s := &now.shape; !s.led() || s.lanes && s.protocol == niagara || l.leader < 0 || len(f.writes) < minute/2 {
		return nil
	}
	best := -1
	for i := range l.members {
		m := &l.members[i]
		if i == l.leader || !m.mayLead() || f.near(l, i) <= 0.5 || l.near(i, l.leader) {
			continue
		}
		if best < 0 || l.way(i) < l.way(best)*nearlyBest ||
			l.way(i) < l.way(best)/nearlyBest && l.members[i].ID == f.favored {
			best = i
		}
	}
	if best < 0 || !(l.way(best) <= l.way(l.leader)/2) { // NaN: not known
		return nil
	}
	o := newModel(l, now.shape, f.learnedBy(l)).option(v, &now.shape, best)
	if o.gain = share(o.Throughput, now.Throughput); o.Excluded != "" || o.gain < 1 {
		return nil
	}
	reason := fmt.Sprintf("%.0f%% of the last minute's writes came to %s, and the way to the leader is %s in place of %s",
		100*f.near(l, best), l.members[best].area(), round(l.way(best)), round(l.way(l.leader)))
	return f.wanted(v, &o, o.key(leaderOf(v)), f.Patience.lasts(), reason)
}

// area is the member's zone, or itself if it has none.
func (m *Member) area() string {
	if m.Zone != "" {
		return "zone " + m.Zone
	}
	return m.called()
}

// near reports whether two members are in one zone, or are the same.
func (l *load) near(i, j int) bool {
	return i == j || l.members[i].Zone != "" && l.members[i].Zone == l.members[j].Zone
}

// way is the mean round trip from the members whose clients write to a member.
func (l *load) way(to int) float64 {
	sum := 0.0
	for i := range l.members {
		if m := &l.members[i]; m.rate > 0 {
			sum += m.rate * m.trip[to]
		}
	}
	return share(sum, l.rate)
}

// idle: instances have nothing to do, so that one is enough.
func (f *Fitter) idle(v *View, all []option) *wanted {
	now := &all[0]
	if now.shape.instances == 1 {
		return nil
	}
	sum := 0.0
	for i := range f.load.members {
		u := &f.load.members[i].used
		if u.cpu > idleShare || u.full() {
			return nil
		}
		sum = max(sum, u.loops)
	}
	if sum > idleShare {
		return nil
	}
	want := shape{protocol: raft, instances: 1}
	if now.shape.code {
		want = shape{protocol: craft, code: true, k: now.shape.k, instances: 1}
	}
	for i := range all[1:] {
		o := &all[1+i]
		if o.shape == want && o.leader == f.load.leader && o.Excluded == "" && o.gain >= 0.95 {
			return f.wanted(v, o, "idle", idleLasts*f.Patience.lasts(), fmt.Sprintf(
				"loops of %d instances are busy %.0f%% of the time together, so one is enough", now.shape.instances, 100*sum))
		}
	}
	return nil
}

// idleShare is how busy loops, or cores, are at most that have little to do.
const idleShare = 0.3

// writes are one second's commands by member.
type writes struct {
	of []ofMember
}

type ofMember struct {
	id   protocol.MemberID
	rate float64
}

// near is the part of the last minute's commands that came to a member's zone, or to itself if it has none.
func (f *Fitter) near(l *load, to int) float64 {
	there, sum := 0.0, 0.0
	for _, w := range f.writes {
		for _, one := range w.of {
			sum += one.rate
			for i := range l.members {
				if l.members[i].ID == one.id && l.near(i, to) {
					there += one.rate
				}
			}
		}
	}
	return share(there, sum)
}
