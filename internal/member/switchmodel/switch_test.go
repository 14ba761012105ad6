package switchmodel

// begin: x takes part in the next instance (W2, W6). Its first record is another step, unless it is written already.
func (c *model) begin(s *cluster, x int) {
	m := &s.m[x]
	old := &m.in[m.at]
	sealing := old.log[c.counts(&old.log, old.n)-1]
	if sealing.kind() < seal {
		s.fail(staleProfile)
	}
	if c.membersOfTail && old.log.find(old.n, joint) {
		m.only = m.at + 2
	}
	m.at++
	if m.rec >= m.at {
		return
	}
	first := sealing.firstLeader()
	if c.elects && (!c.leadsUnvoted || int(first) != x) {
		return
	}
	m.in[m.at] = replica{term: 1, vote: first + 1}
	s.net[m.at].votes[1][x] = first + 1
	switch {
	case int(first) == x && c.together && c.proposed(s, x) && m.own != m.at && !c.ownAgain:
	case int(first) == x:
		m.in[m.at].role = leader
		s.leads(x, m.at)
	case c.unborn:
		m.in[m.at], s.net[m.at].votes[1][x] = replica{}, 0
	}
}

// proposed reports whether x proposed the S of the instance before the one that it takes part in, in any incarnation.
// S names its proposer.
func (c *model) proposed(s *cluster, x int) bool {
	old := &s.m[x].in[s.m[x].at-1]
	sealing := old.log[c.counts(&old.log, old.n)-1]
	return int(s.net[s.m[x].at-1].leader[sealing.term()]) == x+1
}

// recorded reports whether x wrote its first record of an instance together with S. It counts for this S alone.
func (c *model) recorded(s *cluster, x int, in uint8) bool {
	m := &s.m[x]
	if !c.together || in == 0 || m.own != in && !c.ownAgain || !c.proposed(s, x) && !c.ownOfAny {
		return false
	}
	old := &m.in[in-1]
	return old.durable >= c.counts(&old.log, old.n) || c.ownUnsynced
}

// switching: x begins what it knows to be decided, writes its first record, counts acknowledgements itself, or is
// told of a seal.
func (c *model) switching(s *cluster, x int, yield successor) {
	m := &s.m[x]
	in := m.at
	old := &m.in[in]
	if p := c.counts(&old.log, old.n); p > 0 && (old.commit >= p || c.beginAppended) {
		n := *s
		q := &n.m[x].in[in]
		q.commit = max(q.commit, p)
		c.begin(&n, x)
		c.learn(&n, x)
		yield(do("begin", x, int(in)+1), &n)
	}
	if m.rec < in && (old.role == leader || c.elects) && !c.bornTwice {
		n := *s
		n.m[x].record()
		yield(do("record", x, int(in)), &n)
	}
	if c.witnesses && in == 0 {
		c.witnessing(s, x, yield)
	}
	for y := range s.m {
		if c.closes {
			break
		}
		from := &s.m[y]
		has := from.at > in && from.kept <= in || c.unsureProof && from.at == in
		if p := c.counts(&from.in[in].log, from.in[in].n); y != x && p > 0 && has {
			n := *s
			c.takeSeal(&n, x, y, p)
			yield(do("sealed", x, y, int(in)), &n)
		}
	}
}

// takeSeal: y tells x that S is decided at p, with what is before it (W9).
func (c *model) takeSeal(s *cluster, x, y int, p uint8) {
	m := &s.m[x]
	r, l := &m.in[m.at], &s.m[y].in[m.at].log
	switch {
	case c.bareProof && r.n+1 >= p:
		r.log[p-1] = l[p-1]
		r.n, r.commit = max(r.n, p), p
		r.durable = r.n
	case c.cutsTail:
		r.log, r.n, r.durable, r.commit = log{}, p, p, p
		copy(r.log[:], l[:p])
	default: // what is behind S stays until the first record is durable
		if !r.follow(l, p) {
			s.fail(cutDecided)
		}
		r.commit = max(r.commit, p)
	}
	r.role = follower
	r.raise(r.log[p-1].term())
	if !c.takesFirst && s.wrong == right { // S may be decided in a later term than its own, so at once
		c.begin(s, x)
	}
	c.learn(s, x)
}

// witnessing: a member counts the others' acknowledgements, whatever the leader says.
func (c *model) witnessing(s *cluster, x int, yield successor) {
	r := &s.m[x].in[0]
	for term := 1; term <= lastTerm; term++ {
		for k := r.n; k > r.commit; k-- {
			e := r.log[k-1]
			if int(e.term()) == term && e == s.net[0].log[term][k-1] && majority(s.net[0].acks[term][k-1]) {
				n := *s
				n.m[x].in[0].commit = k
				c.learn(&n, x)
				yield(do("learn", x, int(k)), &n)
			}
		}
	}
}

// installing: x gets a snapshot of a place that was decided.
func (c *model) installing(s *cluster, x int, yield successor) {
	if !c.snapshots {
		return
	}
	for y := range s.m {
		if from := &s.m[y]; y != x && from.at > 0 && !c.olds {
			c.offer(s, x, from.at, from.in[from.at].commit, yield)
		}
	}
	if c.olds {
		in, base := uint8(0), uint8(0)
		for at := uint8(1); at <= s.n; at++ {
			if in+1 < instances && s.p[in] > 0 && at >= s.p[in] {
				base = s.p[in]
				in++
			}
			c.offer(s, x, in, at-base, yield)
		}
	}
	if m := &s.m[x]; c.oldAnswers && m.kept < m.rec {
		n := *s
		n.m[x].kept = m.rec
		yield(do("give up", x), &n)
	}
}

// offer: a snapshot counts if it is newer, by (instance, index).
func (c *model) offer(s *cluster, x int, in, at uint8, yield successor) {
	m := &s.m[x]
	newer := in > m.at || in == m.at && at > m.in[in].commit
	if c.byIndex {
		newer = at > m.in[m.at].commit
	}
	if !newer {
		return
	}
	n := *s
	if in < m.at {
		n.fail(wentBack)
	}
	c.install(&n, x, in, at)
	c.learn(&n, x)
	yield(do("snapshot", x, int(in), int(at)), &n)
}

// install puts a snapshot in the place of the logs before it. The member is born in its instance as any other is.
func (c *model) install(s *cluster, x int, in, at uint8) {
	m := &s.m[x]
	base := uint8(0)
	for i := range in {
		r, n := &m.in[i], s.p[i]-base
		r.log, r.n, r.durable, r.commit, r.role = log{}, n, n, n, follower
		copy(r.log[:], s.known[base:s.p[i]])
		base = s.p[i]
	}
	r := &m.in[in]
	if in > 0 && m.rec < in && m.at < in {
		if *r = (replica{}); !c.elects {
			*r = replica{term: 1, vote: s.known[base-1].firstLeader() + 1}
		}
	}
	var l log
	copy(l[:], s.known[base:base+at])
	if r.n < at || !prefix(&r.log, &l, at) {
		r.log, r.n, r.durable, r.role = l, at, at, follower
	}
	r.commit = max(r.commit, at)
	if at > 0 {
		r.raise(l[at-1].term())
	}
	m.at, m.rec, m.kept = in, in, in
	m.sync()
}

// failing: a crash leaves what is on the disk.
func (c *model) failing(s *cluster, x int, yield successor) {
	if s.crashes == c.crashes {
		return
	}
	n := *s
	n.crashes++
	m := &n.m[x]
	for i := range m.in {
		r := &m.in[i]
		r.role, r.n, r.commit = follower, r.durable, 0
		clear(r.log[r.n:])
		if i > int(m.rec) {
			*r = replica{}
		}
	}
	m.at, m.own = m.rec, 0
	if c.forgets {
		m.at = m.kept
	}
	for i := range m.at {
		r := &m.in[i]
		r.commit = c.counts(&r.log, r.n)
	}
	if m.at > 0 && c.leadsAgain {
		r, l := &m.in[m.at], s.net[m.at].leader[1]
		if r.term == 1 && int(l) == x+1 {
			r.role = leader
		}
	}
	if n.read.phase == asked && int(n.read.by) == x {
		n.read = read{phase: over}
	}
	yield(do("crash", x), &n)
}
