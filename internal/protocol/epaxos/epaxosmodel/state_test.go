package epaxosmodel

import "fmt"

const (
	crowd   = 5 // members at most
	names   = 3 // commands at most; command i is proposed by member i
	ballots = 4 // ballots of a command; the last one is kept for the judge of what may still come of a state
	last    = ballots - 1
)

// A value is what is decided for a command: whether it is a no-op, and on which commands it depends. 0 is none.
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

// What a member knows of a command's beginning: the command itself, with its first dependencies.
const (
	noInit    = iota
	fromFirst // from its proposer
	validated // from who recovers it
	undurable // from its proposer, which has decided it, and has not got that on its disk
)

// place is what a member has on its disk of a command.
type place struct {
	promised uint8 // the highest ballot that it answered
	ballot   uint8 // of what is accepted
	phase    uint8
	value    value // what is preaccepted, accepted or decided
	init     uint8
}

// command reports whether the member knows the command, or a no-op in its place.
func (p *place) command() bool { return p.value&some != 0 || p.init != noInit }

// report is what a member says of a command when it promises a ballot.
type report struct {
	given  uint8
	ballot uint8
	phase  uint8
	value  value
}

// Stages of who recovers a command under a ballot.
const (
	idle = iota
	collects
	validates
	waits
	finished
)

// attempt is a ballot of a command: who opened it, and how far that member is. All but asked and votes is
// volatile.
type attempt struct {
	opener uint8 // 1 + the member; gone: it has finished, or forgotten
	stage  uint8
	// quorum is who was asked to validate. same is how many of these hold the first dependencies unchanged.
	quorum, same uint8
	deps         value // to validate
	reports      [crowd]report
	// against are the commands that contradict, as each member says: undecided ones in the lower half of the
	// byte, decided ones in the upper half. valid is who has said it.
	against [crowd]uint8
	valid   uint8

	sent  uint8 // 1: Recover was sent
	asked value // that was sent in Accept; some: it was
	votes uint8 // whose answers were sent
}

const gone = 15

// end forgets what is volatile.
func (a *attempt) end() {
	*a = attempt{opener: gone, stage: finished, sent: a.sent, asked: a.asked, votes: a.votes}
}

// cluster is a state. What was sent stays: it arrives late, twice or never.
type cluster struct {
	on       [crowd][names]place
	first    [names]value        // PreAccept: the first dependencies; 0: not proposed
	told     [names][crowd]value // answers to that
	leads    [names]uint8        // the proposer continues with ballot 0: stage collects
	attempts [names][ballots]attempt
	waiting  uint8 // commands of which was said that whoever recovers them waits, with many equal answers
	decided  [names]value
	clash    uint8 // two values were decided
	crashed  uint8 // how many crashes there were
}

// rules is what members do. The zero value, with sizes, is what docs/internals/epaxos.md says.
type rules struct {
	oneBallot     bool // the ballot of what is accepted is that of the last promise
	merge         bool // unequal answers are merged in a recovery
	dropDeps      bool // what is accepted or preaccepted is proposed again without dependencies
	fewer         int  // so many fewer make a fast quorum
	unchecked     bool // a recovery does not ask for contradictions
	patient       bool // a recovery does not hear that others wait
	blindToOpen   bool // only decided commands contradict
	inexact       bool // an exact count of equal answers, and a proposer that did not answer, say nothing
	lenient       bool // a recovery accepts what a single member answered, however many should have
	forgetful     bool // what Validate brought is not durable
	early         bool // a fast decision is told before it is on the proposer's disk
	resumes       bool // a proposer that starts again continues with ballot 0
	lateFast      bool // a proposer takes the fast path though it has promised another ballot
	anyCoord      bool // the answer of the proposer is like that of others
	keepDeps      bool // a no-op depends on what the command depended on, as far as that is known
	skipNoops     bool // a no-op that is decided is no dependency
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
