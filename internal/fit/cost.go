package fit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
)

// What the model knows beyond the reports. Ratios are of what a command takes with raft.
const (
	// A leader's work for a command is 1; that of a follower is this: 18 to 32 % of a core, and 19 to 28 % with batches
	// (docs/reports/benchmarks.md, lcr-cpu).
	followerWork = 0.65
	// With iss each member does 1.5 of it: CPU of all members for a command, with batches, over raft's: 1.9 with 3
	// members, 2.3 with 6 (throughput of ISS, EPaxos and WPaxos).
	issWork = 1.5
	// With multi-Paxos each does 1.2: 1.0 with batches, 1.4 to 1.7 without (the same table).
	paxosWork = 1.2
	// Each instance more takes a tenth: twelve do half as many commands on two cores as one (results of NIAGARA).
	instanceWork = 0.09
	// What a blind command in a lane saves the leader, and costs each other member: 32 to 26 %, 18 to 21 %, with 0.56 of
	// commands blind (lcr-cpu).
	laneSpares, laneCosts = 0.33, 0.3
	// Multi-Paxos writes each entry twice (docs/using/multi-paxos.md), and so do lanes (docs/using/lcr.md).
	twiceWritten = 2.0

	// A resource counts as known from this busy share on. Below it is not known what it would carry: batches grow with
	// the load (CPU for a command falls from 85 to 1.3 µs as the rate rises 64 times: latency over throughput).
	busyLoop, busyCPU, busyApply, busyDisk = 0.5, 0.5, 0.5, 0.8
	// A disk is busy with syncs at any load. It is full of bytes only if a sync has as many as these.
	diskBytes = 128 << 10
	// A link is full if what waits takes it this long, and is as many bytes, in as many reports one after the other: a
	// burst waits for less than that. What it carries is what commands take of it by the model, if that is about the
	// bytes that were sent: more is sent besides, and answers come late at first.
	fullQueue      = 50 * time.Millisecond
	fullQueueBytes = 64 << 10
	fullReports    = 2
	mostBesides    = 1.5
	// A resource that is as busy is what limits the throughput.
	nearFull = 0.85

	// When a member is slow: its sync takes slowSync and slowTimes the others', or it has more entries to apply than
	// slowUnapplied and those of a second, or the links of most others to it, and to it alone, are slowQueue behind, or
	// round trips to it take slowFar times as long as between others, and slowSync longer.
	slowSync      = 50 * time.Millisecond
	slowTimes     = 5
	slowFar       = 2.5
	slowUnapplied = 1000
	slowQueue     = 250 * time.Millisecond
	// Members answer alike within levelTimes, where shorter times than levelLeast are equal.
	levelTimes = 1.5
	levelLeast = 2 * time.Millisecond
	// Slots of other instances are proposed at the same time, which takes half a trip more, or skipped when this one
	// arrives, which takes a whole one. Between both: 169 commands/s of 50 clients in five regions, by the model 158.
	othersTrip = 0.75
	// Where a round trip takes this long, members of iss tell all others what they accepted (docs/internals/iss.md).
	tellsVotes = 2 * time.Millisecond
)

// model computes costs under one load. now is the active profile, full what resources are known to carry.
type model struct {
	*load
	now    shape
	leader int
	waits  []float64 // of each member: the time of a command that the model does not explain
	scale  []float64 // of each member: what the path takes, of what the model says
	full   limits
	ratio  float64 // of what is measured under the active profile to what the model says of it

	// unknown is what is not known of the active profile, so that nothing can be compared; "": all is known.
	unknown string
	favored protocol.MemberID // see compare
}

// cost is what the model says of a shape and a leader.
type cost struct {
	rate    float64
	latency float64
	limit   string
	unknown string
}

// newModel fits the model to what is measured under the active profile, so that it says of it what is so. learned are
// the most bytes that links carried when they were full, 0: they never were.
func newModel(l *load, now shape, learned []float64) *model {
	m := &model{load: l, now: now, leader: l.leader, ratio: 1}
	n := len(l.members)
	m.waits, m.scale = make([]float64, n), make([]float64, n)
	d := m.demand(&now, l.leader)
	m.full = m.known(d, learned)
	paths := make([]float64, n)
	for i := range paths {
		m.scale[i], paths[i] = 1, known(m.path(&now, l.leader, i))
	}
	for range 5 {
		times := make([]float64, n)
		for i := range paths {
			times[i] = m.scale[i]*paths[i] + m.waits[i]
		}
		rates := m.solve(times, d)
		for i := range l.members {
			o := &l.members[i]
			if o.rate <= 0 || o.inside <= 0 || rates[i] <= 0 || math.IsInf(paths[i], 0) {
				continue
			}
			off := o.inside/o.rate - o.inside/rates[i] // what is missing in the model's time
			if m.waits[i] += off; m.waits[i] < 0 {
				m.scale[i] = max(0, m.scale[i]+share(m.waits[i], paths[i]))
				m.waits[i] = 0
			}
		}
	}
	c := m.of(&now, l.leader)
	if m.unknown = c.unknown; c.rate > 0 {
		m.ratio = l.rate / c.rate
	}
	return m
}

// of is the cost of a shape with a leader.
func (m *model) of(s *shape, leader int) cost {
	var c cost
	paths := make([]float64, len(m.members))
	for i := range m.members {
		if m.members[i].inside <= 0 {
			continue
		}
		path := m.path(s, leader, i)
		if math.IsNaN(path) || math.IsInf(path, 0) {
			c.unknown = fmt.Sprintf("not all round trips are known that commands of %s take", m.members[i].called())
			return c
		}
		paths[i] = path * m.scale[i]
		if m.now.led() || !s.led() || !m.slowed() { // otherwise what is waited for is the slow member
			paths[i] += m.waits[i]
		}
	}
	d := m.demand(s, leader)
	rates := m.solve(paths, d)
	for _, r := range rates {
		c.rate += r * m.ratio
	}
	c.limit, c.latency = m.limit(s, leader, d, rates), share(m.inside, c.rate)
	return c
}

// path is how long the messages of a command take that comes to member i, with syncs, until it is answered; NaN or
// infinite: that is not known, or not possible.
func (m *model) path(s *shape, leader, i int) float64 {
	code := share(m.members[i].body, m.members[i].bytes)
	each := func(quorum func(acks int) float64) float64 { // by bytes, as bytes are what coded commands are for
		whole := quorum(m.majority())
		if !s.code || code == 0 {
			return whole
		}
		n := len(m.members)
		acks := n - m.majority() + s.fragments(n, m.live())
		return (1-code)*whole + code*quorum(max(acks, m.majority()))
	}
	if s.led() {
		if leader < 0 {
			return math.NaN()
		}
		through := each(func(acks int) float64 { return m.trip(i, leader) + m.quorum(leader, acks) })
		if early := m.members[i].early; s.lanes && i != leader && early > 0 {
			own := each(func(acks int) float64 { return m.quorum(i, acks) })
			through = (1-early)*through + early*min(own, through)
		}
		return through
	}
	return each(func(acks int) float64 { return m.shared(s, i, acks) })
}

// shared is path where every member, or several, lead: the own decision, and what the others' slots before it take.
func (m *model) shared(s *shape, i, acks int) float64 {
	own := m.quorum(i, acks)
	if !s.leads(i, -1) { // the nearest leader takes it
		own = math.Inf(1)
		for j := range m.members {
			if s.leads(j, -1) && m.members[j].Present {
				own = least(own, m.trip(i, j)+m.quorum(j, acks))
			}
		}
	}
	for j := range m.members {
		o := &m.members[j]
		if j == i || !o.Present || !s.leads(j, -1) {
			continue
		}
		busy := o.inside > 0
		switch {
		case s.protocol == iss && busy: // its slot is decided, or skipped when this one arrives
			own = max(own, m.trip(i, j), m.heard(j, i))
		case s.protocol == iss:
			own = max(own, m.trip(i, j))
		case busy: // skips are ahead of what is idle
			own = max(own, m.quorum(j, acks)+othersTrip*m.trip(j, i))
		}
	}
	return own
}

// heard is when member i knows that a value of member j is decided, with iss.
func (m *model) heard(j, i int) float64 {
	told := m.quorum(j, m.majority()) + m.trip(j, i)/2
	if m.trip(j, i) < tellsVotes.Seconds() {
		return told
	}
	var votes []float64
	for v := range m.members {
		if o := &m.members[v]; o.Present {
			votes = append(votes, m.trip(j, v)/2+o.sync+m.trip(v, i)/2)
		}
	}
	return least(told, nth(votes, m.majority()))
}

// quorum is how long it takes until this many members, the asking one included, have something on their disks.
func (m *model) quorum(of, acks int) float64 {
	var times []float64
	for j := range m.members {
		if o := &m.members[j]; o.Present {
			times = append(times, m.trip(of, j)+o.sync)
		}
	}
	return nth(times, acks)
}

// nth is the n-th shortest time; infinite: there are fewer. Those that are not known are the longest.
func nth(times []float64, n int) float64 {
	if n > len(times) {
		return math.Inf(1)
	}
	slices.SortFunc(times, func(a, b float64) int { return cmp.Compare(known(a), known(b)) })
	return times[n-1]
}

// known is a time for comparison: one that is not known is longer than all others.
func known(t float64) float64 {
	if math.IsNaN(t) {
		return math.Inf(1)
	}
	return t
}

// least is the shorter of two times.
func least(a, b float64) float64 { return min(known(a), known(b)) }

func (m *model) trip(a, b int) float64 { return m.members[a].trip[b] }
func (m *model) majority() int         { return len(m.members)/2 + 1 }

func (m *model) live() (n int) {
	for i := range m.members {
		if m.members[i].Present {
			n++
		}
	}
	return n
}
