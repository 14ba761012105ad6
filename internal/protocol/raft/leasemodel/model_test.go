package leasemodel

import "math/bits"

const (
	members = 3
	slots   = 5  // the longest log
	most    = 4  // messages in progress
	timeout = 2  // the election timeout, in ticks
	never   = -9 // an instant before all that matters
)

// all are the members, as a mask.
const all uint8 = 1<<members - 1

type role = uint8

const (
	follower role = iota
	precandidate
	candidate
	leader
)

type kind = uint8

const (
	preVote kind = 1 + iota
	preVoteResp
	vote
	voteResp
	app // an append, or a heartbeat: the log of the term's leader up to an index
	appResp
	timeoutNow
	ask // a follower asks its leader for a read
)

// message is one in progress. The zero value is none.
type message struct {
	kind           kind
	from, to, term uint8
	index          uint8 // where the log ends, or up to which index it matches
	extra          uint8 // requests of votes: the last entry's term; app: the commit index; ask: what it must see
	at             int8  // app and its answer: when the leader sent it
	// round: app and its answer belong to the read that was asked for.
	refused, forced, round bool
}

// An entry is its term, and which configuration begins with it: none, the joint one, or the next one.
const (
	joint uint8 = 1 << 3
	next  uint8 = 2 << 3
)

func termOf(e uint8) uint8 { return e & 7 }

// member is what one member knows. vote and lead are 1 + a member; 0: no one.
type member struct {
	term, vote, lead uint8
	role             role
	heard            int8 // when it last heard from a leader
	last, commit     uint8
	log              [slots]uint8
	ballots          uint8 // who voted for it

	// as a leader
	first     uint8         // its first entry
	handed    bool          // someone was told to stand
	confirmed [members]int8 // when what was answered last had been sent
	match     [members]uint8
	round     uint8 // who has confirmed the read
}

func (m *member) lastTerm() uint8 {
	if m.last == 0 {
		return 0
	}
	return termOf(m.log[m.last-1])
}

// stage is the newest configuration in the log, and the index where it begins; 0: the first one.
func (m *member) stage() (stage, at uint8) {
	for i, e := range m.log[:m.last] {
		if s := e >> 3; s != 0 {
			stage, at = s, uint8(i)+1
		}
	}
	return stage, at
}

// budget counts what may happen a few times.
type budget struct{ stands, restarts, transfers, writes uint8 }

// read is one read by index.
type read struct {
	by, term, index, must uint8
	state                 uint8 // asked or answered
}

const (
	asked uint8 = 1 + iota
	answered
	underWay // the question has not come to the leader yet
)

// state is all that is true at one moment; now is instant 0. For the judge alone are: acked, the highest index
// that any leader knew to be decided, and missed: a read by index was served without what it must see.
type state struct {
	m      [members]member
	net    [most]message
	logs   [4][slots]uint8 // what the leader of a term has appended
	acked  uint8
	missed bool
	read   read
	used   budget
}

// model is a kind of cluster, what may happen in it, and the rules that are broken.
type model struct {
	voters, later uint8 // before and after the change; equal: there is none
	joint         bool  // by a joint configuration
	terms         uint8 // the highest
	may           budget
	flying        int  // messages in progress, at most
	ordered       bool // a link keeps the order
	byIndex       bool // leaders have no lease, and one read is asked for
	beats         bool // heartbeats bring no entries
	forwarded     bool // followers are asked for the read, and ask their leader

	promiseOfTerm    bool // a promise says nothing about candidates of the member's own term
	promiseOfPreVote bool // it holds against PreVote only
	fresh            bool // the log of member 2 is new
	restartForgets   bool // a restarted member promised nothing
	leaseAfterHand   bool // a leader that handed over still trusts its lease
	leaseFromAnswer  bool // a lease counts from the answer
	leaseLonger      bool // a lease is longer than the promise
	leaseBeforeOwn   bool // a leader reads before an entry of its own term is decided
	readUnconfirmed  bool // a read by index asks no one
	readOldRound     bool // an answer to an earlier question confirms a read
	questionBefore   bool // a question that was sent before a read was asked for confirms it
	questionUnready  bool // a question is answered before an entry of the leader's own term is decided
}

// enough reports whether these members decide under a configuration.
func (c *model) enough(stage, who uint8) bool {
	old, later := majority(c.voters, who), majority(c.later, who)
	switch {
	case stage == 0:
		return old
	case stage == joint>>3:
		return old && later
	}
	return later
}

func majority(set, who uint8) bool { return 2*bits.OnesCount8(set&who) > bits.OnesCount8(set) }

// votes reports whether a member is a voter under a configuration.
func (c *model) votes(stage uint8, i int) bool {
	switch stage {
	case 0:
		return has(c.voters, i)
	case joint >> 3:
		return has(c.voters|c.later, i)
	}
	return has(c.later, i)
}

func has(set uint8, i int) bool { return set>>i&1 == 1 }

// mayStand: a voter, also one that is removed by a change that it does not know to be decided.
func (c *model) mayStand(m *member, i int) bool {
	stage, at := m.stage()
	before := uint8(0)
	if stage == next>>3 && c.joint {
		before = joint >> 3
	}
	return c.votes(stage, i) || at > m.commit && c.votes(before, i)
}

// sticky: the member promised a leader that it elects no one.
func (m *member) sticky() bool { return m.role == leader || m.heard+timeout > 0 }

// leased: no other member can have been elected, as the leader believes.
func (c *model) leased(m *member, self int) bool {
	if c.byIndex || m.role != leader || m.handed && !c.leaseAfterHand || m.commit < m.first && !c.leaseBeforeOwn {
		return false
	}
	long, who := int8(timeout), uint8(0)
	if c.leaseLonger {
		long++
	}
	for i, at := range m.confirmed {
		if i == self || at != never && at+long > 0 {
			who |= 1 << i
		}
	}
	stage, _ := m.stage()
	return c.enough(stage, who)
}
