package formatmodel

const (
	members   = 3
	instances = 2
	slots     = 2 // the longest log
)

// The formats: each program knows the earlier one, the later program both.
const (
	earlier = 1
	later   = 2
)

// kind is what an entry is.
type kind uint8

const (
	none  kind = iota
	raise      // the log has the later format
	plain      // data in the earlier format
	fresh      // data in the later format
)

// An entry is its term and its kind.
type entry uint8

func newEntry(term uint8, k kind) entry { return entry(term<<2) | entry(k) }
func (e entry) term() uint8             { return uint8(e) >> 2 }
func (e entry) kind() kind              { return kind(e & 3) }

// instance is a member's part of an instance of the log.
type instance struct {
	term   uint8
	leads  bool
	last   uint8
	commit uint8 // lost in a restart
	log    [slots]entry
}

// member is a member with its program and its directory.
type member struct {
	program uint8 // the newest format that it knows
	format  uint8 // recorded in the directory: the member may have it, and writes it
	up      bool
	wants   bool // as a leader it saw that all know the later format, and will propose it
	logs    [instances]instance
}

// state is all that is true at one moment.
type state struct {
	m                   [members]member
	links               [members]bool // link n is between the two other members
	elections, restarts uint8         // so far
	received            bool          // a program received an entry that it does not know
	opened              bool          // a program opened a directory with such an entry
}

// model is what may happen, and the rules that are broken.
type model struct {
	elections, restarts uint8 // at most

	unproven     bool // the leader does not ask which format others know
	keepsLinks   bool // a member that begins to write the later format keeps links with programs that know it
	whenApplied  bool // a handshake records nothing
	keepsUnknown bool // and links with those that do not, too
}

// link is the number of the link between two members.
func link(a, b int) int { return members - a - b }

// knows reports whether a program knows an entry.
func knows(program uint8, e entry) bool { return e.kind() != fresh || program == later }

// record makes a member write the later format, after it has recorded that durably. Its links end, but the one to
// except, whose handshake this is; -1: none.
func (c *model) record(s *state, i, except int) {
	s.m[i].format = later
	for p := range members {
		if p == i || p == except {
			continue
		}
		switch known := s.m[p].program == later; {
		case known && c.keepsLinks, !known && c.keepsUnknown:
		default:
			s.links[link(i, p)] = false
		}
	}
}

// upToDate reports whether b may vote for a.
func upToDate(a, b *instance) bool {
	at, bt := a.lastTerm(), b.lastTerm()
	return at > bt || at == bt && a.last >= b.last
}

func (l *instance) lastTerm() uint8 {
	if l.last == 0 {
		return 0
	}
	return l.log[l.last-1].term()
}

// common is the length of the common beginning of two logs.
func common(a, b *instance) (n uint8) {
	for n < min(a.last, b.last) && a.log[n] == b.log[n] {
		n++
	}
	return n
}

// has reports whether a log has the change of the format among its first n entries.
func (l *instance) has(n uint8) bool {
	for _, e := range l.log[:n] {
		if e.kind() == raise {
			return true
		}
	}
	return false
}
