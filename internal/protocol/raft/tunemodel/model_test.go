package tunemodel

const (
	members = 3
	slots   = 6   // the longest log
	never   = -20 // an instant before all that matters
)

// profile is what a profile says of time.
type profile struct {
	timeout int8 // in ticks
	leases  bool
}

// lease is the length of a lease under a profile.
func (p profile) lease() int8 {
	if p.leases {
		return p.timeout
	}
	return 0
}

// An entry is its term, and the number of the profile that begins with it; 0: none does.
type entry uint8

func (e entry) term() uint8    { return uint8(e) & 7 }
func (e entry) profile() uint8 { return uint8(e) >> 3 }

func newEntry(term, profile uint8) entry { return entry(profile<<3 | term) }

// member is what one member knows.
type member struct {
	term   uint8
	leads  bool
	knows  bool // the leader of its term; a leader does
	heard  int8 // when it last heard from a leader
	last   uint8
	commit uint8
	base   uint8 // where its log begins
	log    [slots]entry

	// as a leader
	first     uint8 // its first entry
	match     [members]uint8
	confirmed [members]int8 // when what was answered last had been sent
}

// in is the number of the profile active at an index; the first one is in no entry.
func (m *member) in(at uint8) (n uint8) {
	for _, e := range m.log[:at] {
		n = max(n, e.profile())
	}
	return n
}

// budget counts what may happen a few times.
type budget struct{ elections, restarts, snapshots uint8 }

// state is all that is true at one moment; now is instant 0. elected is the highest term with a leader, for the judge.
type state struct {
	m       [members]member
	elected uint8
	used    budget
}

// model is a kind of cluster, what may happen in it, and the rules that are broken.
type model struct {
	profiles []profile
	may      budget

	longerByMajority bool // a longer lease counts once a majority has acknowledged the profile
	longerAtOnce     bool // a longer lease counts at once, and leases that are switched on do
	shorterDecided   bool // a leader takes a shorter length when it knows that the profile is decided
	voterShorter     bool // a voter takes a shorter length when the profile is in its log
	voterDecided     bool // a voter takes a longer length when it knows that the profile is decided
	laggardCounted   bool // a member that acknowledged none of the leader's profiles counts
	startsByCommit   bool // a member that starts takes leases as the last decided profile says
}

// pending are the first and the last profile that a voter must obey: from the last one that it knows to be decided, to
// the newest in its log.
func (m *member) pending() (from, to uint8) { return m.in(m.commit), m.in(m.last) }

// promise is for how long after it heard from a leader a voter elects no other, and whether one that starts is as if it
// had just heard from one.
func (c *model) promise(m *member) (length int8, leases bool) {
	from, to := m.pending()
	switch {
	case c.voterShorter:
		from = to
	case c.voterDecided:
		to = from
	}
	for n := from; n <= to; n++ {
		if p := c.profiles[n]; m.has(n) {
			length, leases = max(length, p.timeout), leases || p.leases
		}
	}
	return length, leases
}

// has reports whether a profile is in a log. Numbers are given once, so a truncated one is left out.
func (m *member) has(n uint8) bool {
	if n == 0 {
		return true
	}
	for _, e := range m.log[:m.last] {
		if e.profile() == n {
			return true
		}
	}
	return false
}

// sticky reports whether a member promised a leader to elect no other.
func (c *model) sticky(m *member) bool {
	length, leases := c.promise(m)
	return m.leads || m.heard+length > 0 && (m.knows || leases)
}

// lease is for how long after it was sent a message counts that a member answered.
func (c *model) lease(m *member, p int) int8 {
	oldest, newest := m.in(m.base), m.in(m.last)
	from := m.in(m.match[p])
	switch {
	case c.longerAtOnce, c.longerByMajority && newest == m.in(m.commit):
		return c.profiles[newest].lease()
	case c.shorterDecided && newest != m.in(m.commit):
		return c.profiles[m.in(m.commit)].lease()
	case c.shorterDecided:
		return c.profiles[newest].lease()
	case m.match[p] < m.oldestAt() && !c.laggardCounted:
		return 0
	}
	from = max(from, oldest)
	length := int8(127)
	for n := from; n <= newest; n++ {
		if m.has(n) {
			length = min(length, c.profiles[n].lease())
		}
	}
	return length
}

// oldestAt is the index at which the oldest profile begins that a leader has; all members have the first one.
func (m *member) oldestAt() uint8 {
	if m.in(m.base) == 0 {
		return 0
	}
	return m.base
}

// leased: no other member can have been elected, as a leader believes.
func (c *model) leased(m *member, self int) bool {
	if !m.leads || m.commit < m.first {
		return false
	}
	n := 1
	for p, at := range m.confirmed {
		if p != self && at != never && at+c.lease(m, p) > 0 {
			n++
		}
	}
	return 2*n > members
}
