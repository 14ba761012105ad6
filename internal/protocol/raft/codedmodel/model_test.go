package codedmodel

import (
	"math/bits"

	"github.com/braidlog/braid/internal/explore"
)

const (
	members = 4 // member n of the text is index n−1
	terms   = 3
	room    = 4 // entries of a log
)

// entry is an entry of a log: kind, argument, term. The argument of a configuration is its voters, that of a body its
// number.
type entry = uint8

// Kinds of entries.
const (
	noop   = 0
	body   = 1 // coded
	config = 2
	wholly = 3 // a configuration whose members hold bodies whole
)

func entryOf(kind, arg, term uint8) entry { return kind<<6 | arg<<2 | term }
func kindOf(e entry) uint8                { return e >> 6 }
func argOf(e entry) uint8                 { return e >> 2 & 15 }
func termOf(e entry) uint8                { return e & 3 }

// What is held of a body.
const (
	none  = 0
	row   = 1 // the member's own
	whole = 2
)

type (
	journal [room]entry
	forms   [room]uint8
)

// member is what a member has. All of it is on its disk, but the entries after synced, and known.
type member struct {
	term, last uint8
	known      uint8 // entries that it knows to be committed
	base       uint8 // entries that its snapshot stands for
	synced     uint8
	log        journal
	holds      forms
}

// What becomes of a term: its leader was not elected yet, prepares, leads, or leads no more.
const (
	unborn = iota
	preparing
	leading
	over
)

// reign is a term: what its leader sent at most, and what it heard from members that left the term.
type reign struct {
	by, phase   uint8
	begun       uint8 // its first entry
	sends       uint8 // 1: others may have its log
	last, known uint8
	log         journal
	heard       [members]said
}

// said is the leader's view of a member.
type said struct {
	here         uint8 // 1: the member was in the leader's term
	match, known uint8
	lacks        uint8 // 1: it has nothing of some body
	copies       uint8 // 1: it obeys a configuration that wants whole copies, and has them all
	holds        forms
}

// cluster is a state.
type cluster struct {
	m       [members]member
	t       [terms + 1]reign
	decided uint8
	done    journal
	in      [room]uint8 // the terms in which entries were decided
	puts    uint8
	changes uint8
	crashes uint8
	wrong   uint8 // what a step did that must not happen
}

// What a step must not do.
const (
	cutDecided = 1 + iota
	decidedTwice
	cutBeforeConfig
)

// rules are the variants; the zero value is what the product does.
type rules struct {
	trimByApplied bool // a member trims by the configuration that it has applied, whatever its log says

	paperPrefix bool // an entry is committed although a coded one before it is not durable
	naive       bool // any majority that holds anything commits
	fewAnswers  bool // one answer fewer is enough to give entries up
	downgrade   bool // a row replaces a whole copy
	changeAny   bool // members change whatever becomes of bodies
	afterCoded  bool // a configuration may come after a coded entry that is not committed
	inferNone   bool // a new leader does not take what is coded before a configuration for committed
	trimAny     bool // a whole copy becomes a row whatever others hold
	trimMemory  bool // what others hold need not be on their disks
	trimAcked   bool // who only acknowledged counts
	trimWhole   bool // who is to hold bodies whole may trim
	oldAcks     bool // what members said in earlier terms counts
	memory      bool // a leader counts what its own disk does not hold
	keepTerm    bool // a snapshot does not raise the term
	forgetful   bool // who has compacted an entry answers that it holds nothing
}

// setting is a cluster, and how far it goes.
type setting struct {
	name    string
	voters  uint8
	next    []uint8 // voters to which it may change
	k       int
	terms   uint8
	length  uint8
	puts    uint8
	crashes uint8
	changes uint8
	trims   bool // and snapshots
	plain   bool // no one asks for whole copies
	power   bool // a crash is one of all members
}

type model struct {
	setting
	rules
}

func (m *model) space() explore.Space[cluster, step] {
	begin := cluster{}
	for i := range begin.m {
		begin.m[i].term = 1
	}
	begin.t[1] = reign{phase: leading, sends: 1}
	return explore.Space[cluster, step]{Beginning: begin, Each: m.each, Describe: step.String, Judge: m.judge,
		Normalize: arrange}
}

func size(set uint8) int        { return bits.OnesCount8(set) }
func majority(n int) int        { return n/2 + 1 }
func has(set uint8, i int) bool { return set>>i&1 == 1 }

// all are the members that there are at any time.
func (m *model) all() uint8 {
	all := m.voters
	for _, c := range m.next {
		all |= c
	}
	return all
}

// newest is the newest configuration among the first entries of a log, and its index; 0: the first one.
func (m *model) newest(log *journal, upTo uint8) (voters, at uint8) {
	voters = m.voters
	for i, e := range log[:upTo] {
		if kindOf(e) >= config {
			voters, at = argOf(e), uint8(i)+1
		}
	}
	return voters, at
}

// shared is how many entries two logs have in common.
func shared(a *journal, n uint8, b *journal, o uint8) (c uint8) {
	for c < n && c < o && a[c] == b[c] {
		c++
	}
	return c
}

// outlasts is docs/internals/craft.md, 2.1, for an entry that a majority has: it survives the loss of any minority.
func (m *model) outlasts(voters uint8, holds func(i int) uint8) bool {
	copies, rows := 0, 0
	for i := range members {
		if !has(voters, i) {
			continue
		}
		switch holds(i) {
		case whole:
			copies++
		case row:
			rows++
		}
	}
	spare := size(voters) - majority(size(voters))
	return copies > spare || copies+rows >= spare+m.k
}

// held is what a member holds of an entry at a place from 0.
func (s *cluster) held(i int, at uint8, e entry) uint8 {
	if p := &s.m[i]; at < p.last && p.log[at] == e {
		return p.holds[at]
	}
	return none
}

// recoverable reports whether a body can be made from what all members hold.
func (m *model) recoverable(s *cluster, at uint8, e entry) bool {
	holders := 0
	for i := range members {
		switch s.held(i, at, e) {
		case whole:
			return true
		case row:
			holders++
		}
	}
	return holders >= m.k
}
