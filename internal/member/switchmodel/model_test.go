package switchmodel

import "math/bits"

// The cluster: instances follow each other, each with a log of its own that Raft decides.
const (
	members   = 3
	instances = 3
	room      = 3 // entries of an instance's log
	places    = instances * room
	lastTerm  = 3
)

// entry is kind<<2 | term; 0: there is none.
type entry uint8

const (
	noop     = 1 + iota
	put      // a write
	repeated // a write that its member proposes again wherever it is not decided
	signal   // the signal of the lane's accepted write
	joint    // a joint configuration: a majority of all, and of member 0 alone
	stale    // stale+m: a seal that replaces the version before the one that is effective
	seal     = stale + members
)

func entryOf(kind int, term uint8) entry { return entry(kind<<2) | entry(term) }
func (e entry) kind() int                { return int(e >> 2) }
func (e entry) term() uint8              { return uint8(e & 3) }

const (
	follower = iota
	candidate
	leader
)

type log [room]entry

// replica is what a member is in an instance.
type replica struct {
	term, vote, role uint8 // vote: member+1
	n, durable       uint8 // entries in the log, and on disk
	commit           uint8 // known to be decided; forgotten by a crash
	log              log
}

type member struct {
	in   [instances]replica
	at   uint8 // the instance that it takes part in: the last one that it knows to have begun
	rec  uint8 // the last instance with a first record on disk
	kept uint8 // the first instance with a log on disk: a snapshot stands for those before it
	only uint8 // instance+1 in which it takes member 0 alone for the voters
	own  uint8 // instance+1 whose S it appended itself, in this incarnation
}

// said is what was ever sent in an instance. Nothing is taken back: it may arrive later, again, or never.
type said struct {
	leader    [lastTerm + 1]uint8 // member+1
	log       [lastTerm + 1]log
	n, commit [lastTerm + 1]uint8
	acks      [lastTerm + 1][room]uint8    // members that acknowledged the leader's log up to here
	votes     [lastTerm + 1][members]uint8 // for member+1
}

// read is one read by index.
type read struct {
	phase uint8 // none, asked, over
	in    uint8
	by    uint8
	term  uint8
	point uint8 // the place that it must be answered at
	need  uint8 // the last place that was decided when it began
	from  uint8 // members that confirmed it
}

const (
	none = iota
	asked
	over
)

// lane is one write on member 2's lane, and the fences of the first instance's leaders.
type lane struct {
	acks, fenced       uint8
	accepted           bool
	answered, reported [lastTerm + 1]uint8
}

type cluster struct {
	m       [members]member
	net     [instances]said
	promise [lastTerm + 1]uint8 // members that promised the first instance's leader of a term to elect no other yet
	crashes uint8
	stood   uint8
	read    read
	lane    lane
	known   [places]entry    // what any member ever knew to be decided, as one log
	n       uint8            // its length
	p       [instances]uint8 // the place of the seal of each instance in it; 0: none yet
	wrong   fault
}

// model is the bounds, what the cluster does, and a variant of the rules.
type model struct {
	terms, length [instances]uint8
	crashes       uint8
	elections     uint8 // in all instances together
	firsts        int   // m is the proposer or, if > 1, the member behind it, …
	switches      int   // instances that are sealed: 0 is 1
	leases        bool
	reads         bool
	witnesses     bool // each member counts the others' acknowledgements itself, as in ISS
	repeats       bool
	lanes         bool
	snapshots     bool
	olds          bool // snapshots may be of any place, however long ago
	joints        bool
	together      bool // a leader that is m itself writes its first record together with S
	stales        bool
	elects        bool // new instances have no first vote and no first leader
	closes        bool // who decides S stops its reads, and begins later; who has begun answers with snapshots alone

	variant
}

// variant is what a wrong implementation does; the zero value is the rules.
type variant struct {
	beginAppended bool // W2: begins when S is in its log
	tellsFirst    bool // W2: the leader tells that S is decided before it has begun
	bornTwice     bool // W3: the first leader, or who votes, speaks before its first record is durable
	forgets       bool // W3: a restarted member does not know that it has begun
	membersOfTail bool // W3: begins with the newest configuration in its log
	oldAnswers    bool // W4: acknowledges, votes and confirms in the old instance after it has begun
	sealedReads   bool // W5: reads by its lease in the old instance after it has begun
	unborn        bool // W6: is born without the vote for m
	leadsAgain    bool // W6: m leads term 1 after a restart
	leadsUnvoted  bool // m leads term 1 at once, although no member is born with a vote
	ownAgain      bool // W6: m takes the record with S for one of this incarnation
	ownOfAny      bool // W3: m takes the record with S for one of another S, which is decided in a later term
	ownUnsynced   bool // W3: m speaks before the record with S is durable
	unfenced      bool // W7: proposes S without a fence
	sealsJoint    bool // W7: proposes S behind a joint configuration
	cutsTail      bool // W8: what is behind S is cut before the first record is durable
	unsureProof   bool // W9: Sealed is sent by a member that only has S in its log
	bareProof     bool // W9: S is taken, and what is before it is not compared
	takesFirst    bool // W9: takes S in one step, and begins in another
	renumbers     bool // W1: proposals are repeated under other numbers
	staleCounts   bool // S that replaces another version than the effective one counts
	byIndex       bool // snapshots are compared by their indexes, whatever their instances
}

func (l *log) find(n uint8, kind int) bool {
	for _, e := range l[:n] {
		if e.kind() == kind {
			return true
		}
	}
	return false
}

// counts is the place of the first seal that counts; 0: there is none.
func (c *model) counts(l *log, n uint8) uint8 {
	for i, e := range l[:n] {
		if e.kind() >= seal || c.staleCounts && e.kind() >= stale {
			return uint8(i) + 1
		}
	}
	return 0
}

// firstLeader is m.
func (e entry) firstLeader() uint8 {
	if e.kind() < seal {
		return uint8(e.kind() - stale)
	}
	return uint8(e.kind() - seal)
}

func majority(set uint8) bool   { return bits.OnesCount8(set) > members/2 }
func has(set uint8, x int) bool { return set>>x&1 == 1 }
func prefix(a, b *log, n uint8) bool {
	for i := range n {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// quorum reports whether a set of members decides in an instance, as x sees its configuration.
func (s *cluster) quorum(x int, in uint8, set uint8) bool {
	m := &s.m[x]
	if m.only == in+1 {
		return has(set, 0)
	}
	if m.in[in].log.find(m.in[in].n, joint) {
		return majority(set) && has(set, 0)
	}
	return majority(set)
}

// sealed is the place of S in an instance's log, if x knows that it is decided.
func (c *model) sealed(s *cluster, x int, in uint8) uint8 {
	r := &s.m[x].in[in]
	return c.counts(&r.log, r.commit)
}

// suspended: x knows that S is decided, and has not begun. It confirms no reads, and has no lease.
func (c *model) suspended(s *cluster, x int, in uint8) bool {
	return c.closes && !c.tellsFirst && s.m[x].at == in && c.sealed(s, x, in) > 0
}

// place is how much of the global log x can show by what it knows of an instance.
func (c *model) place(s *cluster, x int, in uint8) (at uint8) {
	for i := range in {
		at += c.sealed(s, x, i)
	}
	if p := c.sealed(s, x, in); p > 0 {
		return at + p
	}
	return at + s.m[x].in[in].commit
}

// raise enters a later term.
func (r *replica) raise(term uint8) {
	if term > r.term {
		r.term, r.vote, r.role = term, 0, follower
	}
}

// last is the term of the last entry.
func (r *replica) last() uint8 {
	if r.n == 0 {
		return 0
	}
	return r.log[r.n-1].term()
}

func (r *replica) upToDate(than *replica) bool {
	return r.last() > than.last() || r.last() == than.last() && r.n >= than.n
}

// follow writes a leader's log over this one, as a follower does. It reports false if it cuts what is decided.
func (r *replica) follow(l *log, n uint8) bool {
	for i := range n {
		if i < r.n && r.log[i] == l[i] {
			continue
		}
		if i < r.commit {
			return false
		}
		clear(r.log[i:])
		r.log[i], r.n = l[i], i+1
	}
	r.durable = r.n
	return true
}

// sync writes what the member has: all instances share one file.
func (m *member) sync() {
	for i := range m.in {
		m.in[i].durable = m.in[i].n
	}
}

// record writes the first record of the instance that it takes part in, and all that came before.
func (m *member) record() {
	m.rec = max(m.rec, m.at)
	m.sync()
}

// wrote is a write in an instance: if it is the one that it takes part in, its first record went before it.
func (m *member) wrote(in uint8) {
	m.sync()
	if in == m.at {
		m.rec = max(m.rec, in)
	}
}
