package fit

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
)

// load is what the reports say of the members and of their clients' commands: rates by the second, times in seconds.
type load struct {
	members []member
	leader  int // of the global log, -1: none is known
	rate    float64
	inside  float64 // commands in progress
	lacking string  // why no cost can be told; "": it can
}

// member is a voter with what its report says.
type member struct {
	Member
	reported bool
	slow     string // in which way it is slower than the others; "": it is not
	rate     float64
	inside   float64 // commands in progress
	// Bytes are those of all its clients' commands a second, and body those of large ones, which code cuts.
	bytes, body float64
	blind       float64 // share of commands that may take a lane
	early       float64 // share of commands that are answered when they are accepted in a lane
	sync        float64 // time of a sync
	syncs       float64 // a second
	trip        []float64
	used        usage
}

// usage is how busy a member's resources are. Shares are 0…1.
type usage struct {
	loop, loops, apply, cpu float64 // loops is the sum over the instances' loops, loop the busiest one
	disk, diskBytes, synced float64 // share, bytes a second, bytes of a sync
	out, queued             float64 // bytes a second to all others, bytes that wait
	linger                  []float64
	unapplied               float64
}

// measure translates the reports of a view.
func measure(v *View) *load {
	l := &load{members: make([]member, len(v.Members)), leader: -1}
	at := func(id protocol.MemberID) int {
		return slices.IndexFunc(v.Members, func(m Member) bool { return m.ID == id })
	}
	for i, m := range v.Members {
		l.members[i] = member{Member: m, trip: make([]float64, len(v.Members))}
		for j := range v.Members {
			if j != i {
				l.members[i].trip[j] = math.NaN()
			}
		}
		l.members[i].used.linger = make([]float64, len(v.Members))
	}
	for i := range v.Reports {
		r := &v.Reports[i]
		if j := at(r.Member); j >= 0 && r.Span > 0 {
			l.members[j].take(r, at)
		}
	}
	if len(v.Leaders) > 0 {
		l.leader = at(v.Leaders[0])
	}
	l.complete()
	return l
}

// take takes in a member's own report. at is the place of a member.
func (m *member) take(r *Report, at func(protocol.MemberID) int) {
	span := r.Span.Seconds()
	m.reported = true
	a := &r.Asked
	m.rate, m.inside = float64(a.Commands)/span, a.Waited.Seconds()/span
	m.bytes, m.body = float64(a.Bytes)/span, float64(min(a.LargeBytes, a.Bytes))/span
	m.blind = min(1, share(float64(a.Blind), float64(a.Commands)))
	m.early = min(m.blind, share(float64(a.Early), float64(a.Commands)))
	m.sync, m.syncs = share(r.Disk.Time.Seconds(), float64(r.Disk.Syncs)), float64(r.Disk.Syncs)/span
	for _, t := range r.Trips {
		if j := at(t.To); j >= 0 && t.To != r.Member && t.Time > 0 {
			m.trip[j] = t.Time.Seconds()
		}
	}
	u := &m.used
	for _, busy := range r.Loops {
		u.loop, u.loops = max(u.loop, busy), u.loops+busy
	}
	u.apply, u.cpu = r.Apply, r.CPU
	u.disk, u.diskBytes = r.Disk.Time.Seconds()/span, float64(r.Disk.Bytes)/span
	u.synced = share(float64(r.Disk.Bytes), float64(r.Disk.Syncs))
	for _, k := range r.Links {
		u.out, u.queued = u.out+float64(k.Bytes)/span, u.queued+float64(k.Queued)
		if j := at(k.To); j >= 0 && k.Bytes > 0 {
			u.linger[j] = share(float64(k.Queued), float64(k.Bytes)/span)
		}
	}
	u.unapplied = float64(r.Unapplied)
}

// share is a part of a whole, 0 if that is nothing.
func share(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return part / whole
}

// complete fills in what one report says for two members, and what all of them say together.
func (l *load) complete() {
	for i := range l.members {
		m := &l.members[i]
		l.rate, l.inside = l.rate+m.rate, l.inside+m.inside
		if m.Present && !m.reported && l.lacking == "" {
			l.lacking = fmt.Sprintf("no report of %s", m.called())
		}
		for j := range l.members {
			if math.IsNaN(m.trip[j]) {
				m.trip[j] = l.members[j].trip[i]
			}
		}
	}
}

// judge finds the members that are slower than others.
func (l *load) judge() {
	for i := range l.members {
		l.members[i].slow = l.slower(i)
	}
}

func (m *Member) called() string {
	if m.Name != "" {
		return m.Name
	}
	return fmt.Sprintf("member %d", m.ID)
}

// slower says in which way a member is slower than the others; "": it is not.
func (l *load) slower(i int) string {
	m := &l.members[i]
	if !m.reported {
		return ""
	}
	var syncs, waits, trips, others []float64
	for j := range l.members {
		o := &l.members[j]
		if j == i || !o.reported {
			continue
		}
		syncs, waits = append(syncs, o.sync), append(waits, o.used.linger[i])
		for k, trip := range o.trip {
			switch {
			case k == i:
				trips = append(trips, known(trip))
			case k != j && l.members[k].reported:
				others = append(others, known(trip))
			}
		}
	}
	switch far, near := median(trips), median(others); {
	case len(syncs) == 0:
		return ""
	case m.sync >= slowSync.Seconds() && m.sync > slowTimes*median(syncs):
		return fmt.Sprintf("%s takes %s for a sync", m.called(), round(m.sync))
	case m.used.unapplied > max(slowUnapplied, l.rate):
		return fmt.Sprintf("%s has %.0f entries to apply", m.called(), m.used.unapplied)
	case len(waits) > 1 && median(waits) > slowQueue.Seconds() && l.queues() == 1:
		return fmt.Sprintf("links to %s are %s behind", m.called(), round(median(waits)))
	case len(others) > 0 && !math.IsInf(far, 0) && far > slowFar*near && far > near+slowSync.Seconds():
		return fmt.Sprintf("round trips to %s take %s, others %s", m.called(), round(far), round(near))
	}
	return ""
}

// queues is to how many members most others have a queue that is as long as that of a slow member.
func (l *load) queues() (n int) {
	for i := range l.members {
		var waits []float64
		for j := range l.members {
			if o := &l.members[j]; j != i && o.reported {
				waits = append(waits, o.used.linger[i])
			}
		}
		if len(waits) > 1 && median(waits) > slowQueue.Seconds() {
			n++
		}
	}
	return n
}

// median is the middle one, the higher of two; 0 of none.
func median(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(of))
	return s[len(s)/2]
}

// round is a time in seconds with about two digits.
func round(seconds float64) time.Duration {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond)
	case d >= 100*time.Microsecond:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}

// ailing is the first member that is missing, or else the first slow one; nil: there is none.
func (l *load) ailing() (slow *member) {
	for i := range l.members {
		switch m := &l.members[i]; {
		case !m.Present:
			return m
		case m.slow != "" && slow == nil:
			slow = m
		}
	}
	return slow
}

// problem says why a member is ailing.
func (m *member) problem() string {
	if !m.Present {
		return m.called() + " is missing"
	}
	return m.slow
}

// mayLead reports whether a member may lead in place of the present leader.
func (m *member) mayLead() bool { return m.Present && m.slow == "" && !m.Drained }

// slowed reports whether a member is slow.
func (l *load) slowed() bool {
	return slices.ContainsFunc(l.members, func(m member) bool { return m.slow != "" })
}

// blend makes the load the mean of itself and of earlier ones, so that one odd second decides nothing: the fewer
// commands there are, the more the earlier ones count. Members that have left, or came, count as they are.
func (l *load) blend(before *load) {
	if before == nil || l.lacking != "" || before.lacking != "" {
		return
	}
	part := 0.5
	if l.rate < fewCommands {
		part = 0.25
	}
	l.rate, l.inside = 0, 0
	for i := range l.members {
		m := &l.members[i]
		j := slices.IndexFunc(before.members, func(b member) bool { return b.ID == m.ID && b.reported })
		if j >= 0 && m.reported {
			m.blend(&before.members[j], part)
		}
		l.rate, l.inside = l.rate+m.rate, l.inside+m.inside
	}
}

// fewCommands a second are so few that their number differs much from one second to the next.
const fewCommands = 50

// blend makes what a member reports a part of itself, the rest of what it reported before.
func (m *member) blend(b *member, part float64) {
	blind, before := m.rate*m.blind, b.rate*b.blind
	early, sooner := m.rate*m.early, b.rate*b.early
	writing, wrote := m.sync*m.syncs, b.sync*b.syncs
	for _, f := range []struct{ now, before *float64 }{
		{&m.rate, &b.rate}, {&m.inside, &b.inside}, {&m.bytes, &b.bytes}, {&m.body, &b.body}, {&blind, &before},
		{&early, &sooner},
		{&writing, &wrote}, {&m.syncs, &b.syncs}, {&m.used.loop, &b.used.loop}, {&m.used.loops, &b.used.loops},
		{&m.used.apply, &b.used.apply}, {&m.used.cpu, &b.used.cpu}, {&m.used.disk, &b.used.disk},
		{&m.used.synced, &b.used.synced},
	} {
		*f.now = part*(*f.now) + (1-part)*(*f.before)
	}
	m.blind, m.early = min(1, share(blind, m.rate)), min(1, share(early, m.rate))
	m.sync = share(writing, m.syncs)
}
