package switchmodel

import (
	"fmt"
	"strings"

	"github.com/braidlog/braid/internal/explore"
)

// step is what happens between two states.
type step struct {
	verb string
	v    [5]int8 // -1: not used
}

func do(verb string, v ...int) (t step) {
	t = step{verb, [5]int8{-1, -1, -1, -1, -1}}
	for i, n := range v {
		t.v[i] = int8(n)
	}
	return t
}

func (t step) String() string {
	var b strings.Builder
	b.WriteString(t.verb)
	for _, n := range t.v {
		if n >= 0 {
			fmt.Fprintf(&b, " %d", n)
		}
	}
	return b.String()
}

type successor func(step, *cluster)

func (c *model) space() explore.Space[cluster, step] {
	return explore.Space[cluster, step]{Beginning: beginning(), Each: c.each, Describe: step.String, Judge: c.judge,
		Normalize: c.normalize}
}

// beginning: member 0 leads the first instance in term 1.
func beginning() (s cluster) {
	for x := range s.m {
		s.m[x].in[0] = replica{term: 1, vote: 1}
		s.net[0].votes[1][x] = 1
	}
	s.m[0].in[0].role = leader
	s.net[0].leader[1] = 1
	return s
}

func (c *model) each(s *cluster, yield func(step, *cluster)) {
	if s.wrong != right || s.read.phase == over {
		return
	}
	for x := range s.m {
		for in := range uint8(instances) {
			if c.takesPart(s, x, in) {
				c.leading(s, x, in, yield)
				c.receiving(s, x, in, yield)
				c.electing(s, x, in, yield)
			}
		}
		c.switching(s, x, yield)
		c.installing(s, x, yield)
		c.failing(s, x, yield)
	}
	if c.leases {
		c.promising(s, yield)
	}
	if c.reads {
		c.reading(s, yield)
	}
	if c.lanes {
		c.laning(s, yield)
	}
}

// takesPart: a member takes part in the last instance that it has begun, and in no other (W4).
func (c *model) takesPart(s *cluster, x int, in uint8) bool {
	return s.m[x].at == in || c.oldAnswers && s.m[x].at > in
}

// leading: a leader appends, writes, and decides.
func (c *model) leading(s *cluster, x int, in uint8, yield successor) {
	r := &s.m[x].in[in]
	if r.role != leader {
		return
	}
	speaks := s.m[x].rec >= in || c.bornTwice || c.recorded(s, x, in) // W3
	if r.n < c.length[in] && speaks && s.m[x].at == in {
		for _, kind := range c.choices(s, x, in) {
			n := *s
			q := &n.m[x].in[in]
			q.log[q.n] = entryOf(kind, r.term)
			q.n++
			if c.together && kind == seal+x {
				n.m[x].own = in + 1
			}
			n.net[in].log[r.term], n.net[in].n[r.term] = q.log, q.n // sent before it is written here
			yield(do("append", x, int(in), kind), &n)
		}
	}
	if r.durable < r.n {
		n := *s
		n.m[x].wrote(in)
		for i := range r.n {
			n.net[in].acks[r.term][i] |= 1 << x
		}
		yield(do("write", x, int(in)), &n)
	}
	c.deciding(s, x, in, yield)
}

func (c *model) deciding(s *cluster, x int, in uint8, yield successor) {
	r := &s.m[x].in[in]
	for k := r.n; k > r.commit; k-- {
		if r.log[k-1].term() != r.term || !s.quorum(x, in, s.net[in].acks[r.term][k-1]) {
			continue
		}
		n := *s
		n.m[x].in[in].commit, n.net[in].commit[r.term] = k, k
		if c.sealed(&n, x, in) > 0 && n.m[x].at == in && !c.tellsFirst && !c.closes {
			c.begin(&n, x) // in the step that decides, before anything is sent (W2)
		}
		c.learn(&n, x)
		yield(do("decide", x, int(in), int(k)), &n)
		return
	}
}

// choices are the kinds of entries that a leader may append.
func (c *model) choices(s *cluster, x int, in uint8) (kinds []int) {
	r := &s.m[x].in[in]
	if (r.term > 1 || c.elects && in > 0) && r.last() < r.term {
		return []int{noop}
	}
	kinds = append(kinds, put)
	if c.repeats && !r.log.find(r.n, repeated) {
		kinds = append(kinds, repeated)
	}
	if int(in) >= max(1, c.switches) {
		if c.stales && c.counts(&r.log, r.n) == 0 && !r.log.find(r.n, stale+x) {
			kinds = append(kinds, stale+x)
		}
		return kinds
	}
	sealed, pending := c.counts(&r.log, r.n) > 0, r.log.find(r.n, joint)
	if c.joints && !pending && (sealed || c.sealsJoint) {
		kinds = append(kinds, joint)
	}
	fenced := !c.lanes || c.unfenced
	if c.lanes {
		signalled := r.log.find(r.n, signal)
		if s.lane.reported[r.term] == 1 && !signalled {
			kinds = append(kinds, signal)
		}
		fenced = fenced || s.quorum(x, 0, s.lane.answered[r.term]) && (s.lane.reported[r.term] == 0 || signalled)
	}
	if !sealed && fenced && (!pending || c.sealsJoint) {
		for k := range c.firsts {
			kinds = append(kinds, seal+(x+k)%members)
		}
	}
	return kinds
}

// receiving: a member gets what a leader sent last. What it sent before could be received before.
func (c *model) receiving(s *cluster, x int, in uint8, yield successor) {
	r, net := &s.m[x].in[in], &s.net[in]
	for term := max(1, r.term); term <= lastTerm; term++ {
		size := net.n[term]
		if net.leader[term] == 0 || int(net.leader[term]) == x+1 || size == 0 && term == r.term {
			continue
		}
		n := *s
		m := &n.m[x]
		q := &m.in[in]
		q.raise(term)
		q.role = follower
		for i := range size {
			n.net[in].acks[term][i] |= 1 << x
		}
		if in >= m.kept { // a variant acknowledges in an instance that it has no log of
			if !q.follow(&net.log[term], size) {
				n.fail(cutDecided)
			}
			q.commit = max(q.commit, min(size, net.commit[term]))
		}
		m.wrote(in)
		c.learn(&n, x)
		yield(do("receive", x, int(in), int(term), int(size), int(q.commit)), &n)
	}
}

func (c *model) electing(s *cluster, x int, in uint8, yield successor) {
	r, net := &s.m[x].in[in], &s.net[in]
	if r.role != leader && r.term < c.terms[in] && s.stood < c.elections && !(in == 0 && s.promised(x, r.term+1)) {
		n := *s
		q := &n.m[x].in[in]
		q.term, q.vote, q.role = r.term+1, uint8(x)+1, candidate
		n.net[in].votes[q.term][x] = uint8(x) + 1
		n.stood++
		c.voted(&n, x, in)
		yield(do("stand", x, int(in), int(q.term)), &n)
	}
	for y := range s.m {
		other := &s.m[y].in[in]
		free := other.term > r.term || other.term == r.term && r.vote == 0
		fresh := other.upToDate(r) || in < s.m[x].kept
		if y == x || other.role != candidate || !free || !fresh || in == 0 && s.promised(x, other.term) {
			continue
		}
		n := *s
		q := &n.m[x].in[in]
		q.raise(other.term)
		q.vote = uint8(y) + 1
		n.net[in].votes[q.term][x] = uint8(y) + 1
		c.voted(&n, x, in)
		yield(do("vote", x, int(in), y), &n)
	}
	if r.role != candidate {
		return
	}
	votes := uint8(0)
	for v := range s.m {
		if int(net.votes[r.term][v]) == x+1 {
			votes |= 1 << v
		}
	}
	if s.quorum(x, in, votes) {
		n := *s
		n.m[x].in[in].role = leader
		n.leads(x, in)
		yield(do("lead", x, int(in), int(r.term)), &n)
	}
}

// voted: a vote is durable, behind the first record of its instance.
func (c *model) voted(s *cluster, x int, in uint8) {
	if !c.elects || !c.bornTwice || s.m[x].rec >= in {
		s.m[x].wrote(in)
	}
}

// leads: x tells its log as the leader of its term.
func (s *cluster) leads(x int, in uint8) {
	r, net := &s.m[x].in[in], &s.net[in]
	if l := net.leader[r.term]; l != 0 && int(l) != x+1 {
		s.fail(twoLeaders)
	}
	net.leader[r.term], net.log[r.term], net.n[r.term] = uint8(x)+1, r.log, r.n
	for i := range r.durable {
		net.acks[r.term][i] |= 1 << x
	}
}
