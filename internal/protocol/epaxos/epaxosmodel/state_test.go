package epaxosmodel

import "fmt"

const (
	crowd   = 5 // members at most
	names   = 3 // commands at most; command i is proposed by member i
	ballots = 4 // ballots of a command; the judge of the future uses the last one
	last    = ballots - 1
)

// A value is the decision for a command: whether it is a no-op, and on which commands it depends. 0 is none.
type value uint8

const (
	some value = 1 << 7
	noop value = 1 << 6
	mask value = 1<<names - 1 // a bit for each command
)

func (v value) String() string {
	switch {
	case v == 0:
		return "nothing"
	case v&noop != 0:
		return fmt.Sprintf("no-op%03b", v&mask)
	}
	return fmt.Sprintf("command%03b", v&mask)
}

func has(set value, i int) bool { return set>>i&1 == 1 }

// Phases of a command on a member.
const (
	unknown = iota
	preaccepted
	accepted
	committed
)

// How a member got a command, with its first dependencies.
const (
	noInit    = iota
	fromFirst // from its proposer
	validated // from a recovery
	undurable // from its proposer, which has decided it, but not durably
)

// place is a member's durable state of a command.
type place struct {
	promised uint8 // the highest ballot that it answered
	ballot   uint8 // of the accepted value
	phase    uint8
	value    value // the preaccepted, accepted or decided value
	init     uint8
}

// command reports whether the member knows the command, or a no-op in its place.
func (p *place) command() bool { return p.value&some != 0 || p.init != noInit }

// report is a member's report of a command in a promise.
type report struct {
	given  uint8
	ballot uint8
	phase  uint8
	value  value
}

// Stages of a recovery under a ballot.
const (
	idle = iota
	collects
	validates
	waits
	finished
)

// attempt is a ballot of a command: the member that opened it, and its stage. All but asked and votes is volatile.
type attempt struct {
	opener uint8 // 1 + the member; gone: it has finished, or forgotten
	stage  uint8
	// quorum are the members that were asked to validate. same is how many of these have the first dependencies
	// unchanged.
	quorum, same uint8
	deps         value // to validate
	reports      [crowd]report
	// against are the contradicting commands in each member's answer: undecided ones in the lower half of the byte,
	// decided ones in the upper half. valid are the members that have answered.
	against [crowd]uint8
	valid   uint8

	sent  uint8 // 1: Recover was sent
	asked value // the value in Accept; some: it was sent
	votes uint8 // members whose answers were sent
}

const gone = 15

// end clears the volatile state.
func (a *attempt) end() {
	*a = attempt{opener: gone, stage: finished, sent: a.sent, asked: a.asked, votes: a.votes}
}

// cluster is a state. Sent messages stay: they arrive late, twice or never.
type cluster struct {
	on       [crowd][names]place
	first    [names]value        // PreAccept: the first dependencies; 0: not proposed
	told     [names][crowd]value // answers to that
	leads    [names]uint8        // the proposer continues with ballot 0: stage collects
	attempts [names][ballots]attempt
	waiting  uint8 // commands whose recovery waits, with many equal answers, as messages report
	decided  [names]value
	clash    uint8 // two values were decided
	crashed  uint8 // the number of crashes
}

// rules are the rules of members. The zero value, with sizes, is the rules in docs/internals/epaxos.md.
type rules struct {
	oneBallot     bool // the ballot of the accepted value is that of the last promise
	merge         bool // unequal answers are merged in a recovery
	dropDeps      bool // an accepted or preaccepted value is proposed again without dependencies
	fewer         int  // a fast quorum is smaller by this number
	unchecked     bool // a recovery does not ask for contradictions
	patient       bool // a recovery ignores that others wait
	blindToOpen   bool // only decided commands contradict
	inexact       bool // the exact count of equal answers, and a proposer that did not answer, are ignored
	lenient       bool // a recovery accepts what a single member answered, however many should have
	forgetful     bool // the contents of Validate are not durable
	early         bool // a fast decision is sent before it is durable at the proposer
	resumes       bool // a proposer that restarts continues with ballot 0
	lateFast      bool // a proposer takes the fast path though it has promised another ballot
	anyCoord      bool // the proposer's answer counts like those of others
	keepDeps      bool // a no-op keeps the dependencies of the command, as far as they are known
	skipNoops     bool // a decided no-op is no dependency
	noopInvisible bool // no no-op is a dependency, decided or not
}

type model struct {
	rules
	members, f, e int
	commands      int
	highest       [names]uint8 // ballot that may be opened
	crashes       int
	apart         value // commands that interfere with none
	judgeFuture   bool
}

func (m *model) slow() int { return m.members - m.f }
func (m *model) fast() int { return m.members - m.e - m.fewer }

func (m *model) interfere(i, j int) bool { return i != j && !has(m.apart, i) && !has(m.apart, j) }
