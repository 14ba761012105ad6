package check

import (
	"fmt"
	"maps"
	"slices"
)

// Ledger tracks what every member of one instance wrote, voted and decided. It judges Raft's safety: election safety,
// log matching, leader completeness, one vote a term, nothing is sent before it is durable, no decision is ever lost.
//
// All its methods return an error at the first violation.
type Ledger struct {
	// Hints: a leader is a hint. It may be missing decided entries. Logs hold decided entries only.
	Hints bool
	// Quorums are those that decide.
	Quorums Quorums
	// Epochs: many members lead at once, and each of them decides. A configuration is active from the next term on. A
	// void decision need not be on any disk (see DecideVoid).
	Epochs bool
	// Apart: members' logs differ, and are not compared. Each disk must still have what was written to it.
	Apart bool

	leaders map[uint64]uint64 // term → leader
	votes   map[ballot]uint64 // → candidate
	written map[slot]fact
	decided []decision // index 1 …
	config  uint64     // index of the last decided entry that changes the membership
	copies  map[uint64]*copyOf
}

type ballot struct{ member, term uint64 }

type slot struct{ index, term uint64 }

// fact is determined by (index, term): the entry and, by induction, all before it.
type fact struct{ digest, before uint64 }

type decision struct {
	term, digest uint64
	in           uint64  // the term of the leader that decided it
	void         bool    // nothing was decided there
	by           *Voters // whose quorum decided it
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger {
	return &Ledger{leaders: map[uint64]uint64{}, votes: map[ballot]uint64{}, written: map[slot]fact{},
		copies: map[uint64]*copyOf{}}
}

// Start records that a member starts from its disk: state, base, entries and cells, as records. A known member must
// find everything that was durable there.
func (l *Ledger) Start(member uint64, found []Record) error {
	var img image
	for i := range found {
		if err := img.apply(&found[i]); err != nil {
			return fmt.Errorf("member %x restarts: %w", member, err)
		}
	}
	if err := l.base(member, img.base, img.baseTerm); err != nil {
		return err
	}
	c := l.copies[member]
	if c == nil {
		c = &copyOf{disk: img, memory: img.clone()}
		l.copies[member] = c
		return nil
	}
	if err := c.restart(&img); err != nil {
		return fmt.Errorf("member %x restarts: %w", member, err)
	}
	if err := l.vote(member, c.disk.term, c.disk.vote); err != nil {
		return err
	}
	return l.Retained()
}

// Write records that a member writes a record in step seq.
func (l *Ledger) Write(member, seq uint64, r Record) error {
	c := l.copies[member]
	switch r.Kind {
	case EntryRecord:
		if l.Apart {
			break
		}
		if err := l.writeEntry(member, c, &r); err != nil {
			return err
		}
	case BaseRecord:
		if err := l.base(member, r.Index, r.Term); err != nil {
			return err
		}
	case StateRecord:
		if r.Term < c.memory.term {
			return fmt.Errorf("member %x goes back from term %d to term %d", member, c.memory.term, r.Term)
		}
	}
	if err := c.memory.apply(&r); err != nil {
		return fmt.Errorf("member %x: %w", member, err)
	}
	c.pending = append(c.pending, pendingRecord{seq, r})
	return nil
}

func (l *Ledger) writeEntry(member uint64, c *copyOf, r *Record) error {
	if held := l.match(&c.memory); r.Index <= held && l.decidedIn(r.Index, held) <= max(c.memory.term, r.Term) {
		return fmt.Errorf("member %x erases decided entries %d…%d: writes (%d, term %d)", member, r.Index, held, r.Index,
			r.Term)
	}
	before, ok := c.memory.termAt(r.Index - 1)
	if !ok {
		return fmt.Errorf("member %x writes entry %d after %d", member, r.Index, c.memory.last())
	}
	key, f := slot{r.Index, r.Term}, fact{r.Digest, before}
	if known, ok := l.written[key]; ok && known != f {
		return fmt.Errorf("log matching: member %x has (%d, term %d) with digest %x after term %d, "+
			"elsewhere it is %x after term %d",
			member, r.Index, r.Term, f.digest, f.before, known.digest, known.before)
	}
	l.written[key] = f
	return nil
}

// decidedIn is the first term in which one of these entries was decided. A member that has not entered that term was
// not counted. So it may still follow a leader of an earlier one, which never had the entry.
func (l *Ledger) decidedIn(first, last uint64) uint64 {
	in := l.decided[first-1].in
	for _, d := range l.decided[first:last] {
		in = min(in, d.in)
	}
	return in
}

// Cut records that a new leader, which has not written anything in its term yet, deletes the entries after last: the
// first entry of its term will replace them (C2, C8). An entry that is decided in a later term may have been
// undecided when others answered the leader, and this member was not counted for it.
func (l *Ledger) Cut(member, last uint64) error {
	m := &l.copies[member].memory
	if held := l.match(m); held > last && l.decidedIn(last+1, held) <= m.term {
		return fmt.Errorf("C2: member %x deletes decided entries %d…%d before it leads", member, last+1, held)
	}
	if v, at := m.configuration(); v != nil && at > last {
		return fmt.Errorf("C8: member %x deletes the configuration at %d before it leads", member, at)
	}
	if last < m.base || last > m.last() {
		return fmt.Errorf("member %x cuts a log of %d…%d after %d", member, m.base+1, m.last(), last)
	}
	m.entries = m.entries[:last-m.base]
	m.matched = min(m.matched, last)
	return nil
}

// base judges that a snapshot covers decided entries.
func (l *Ledger) base(member, index, term uint64) error {
	if l.Apart {
		return nil
	}
	if index > uint64(len(l.decided)) || index > 0 && l.decided[index-1].term != term {
		return fmt.Errorf("member %x bases its log on index %d of term %d, which was not decided", member, index, term)
	}
	return nil
}

// vote records a vote that is durable or was sent. A vote that was neither may be forgotten and cast again.
func (l *Ledger) vote(member, term, candidate uint64) error {
	if candidate == 0 {
		return nil
	}
	key := ballot{member, term}
	if known, ok := l.votes[key]; ok && known != candidate {
		return fmt.Errorf("member %x votes for %x in term %d after voting for %x", member, candidate, term, known)
	}
	l.votes[key] = candidate
	return nil
}

// Durable records that everything that a member wrote up to step seq is durable.
func (l *Ledger) Durable(member, seq uint64) error {
	c := l.copies[member]
	if err := c.durable(seq); err != nil {
		return fmt.Errorf("member %x: disk: %w", member, err)
	}
	return l.vote(member, c.disk.term, c.disk.vote)
}

// SendVote records that a member sends a candidate its vote.
func (l *Ledger) SendVote(member, term, candidate uint64) error {
	if err := l.vote(member, term, candidate); err != nil {
		return err
	}
	if d := &l.copies[member].disk; d.known() < term || d.known() == term && (d.term != term || d.vote != candidate) {
		return fmt.Errorf("member %x tells %x of its vote in term %d; its disk says term %d, vote %x", member, candidate,
			term, d.term, d.vote)
	}
	return nil
}

// SendStored records that a member acknowledges everything up to index to the leader of a term.
func (l *Ledger) SendStored(member, term, index uint64) error {
	d := &l.copies[member].disk
	if d.known() < term || d.known() == term && d.last() < index {
		return fmt.Errorf("member %x tells the leader of term %d that it holds %d; its disk says term %d, last %d",
			member, term, index, d.known(), d.last())
	}
	return nil
}

// SendTerm records that a member sends a message in a term.
func (l *Ledger) SendTerm(member, term uint64) error {
	if d := &l.copies[member].disk; d.known() < term {
		return fmt.Errorf("member %x speaks in term %d; its disk says term %d", member, term, d.known())
	}
	return nil
}

// Lead records that a member leads a term.
func (l *Ledger) Lead(member, term uint64) error {
	if known, ok := l.leaders[term]; ok {
		if known != member {
			return fmt.Errorf("election safety: %x and %x lead term %d", known, member, term)
		}
		return nil
	}
	l.leaders[term] = member
	if l.Hints {
		return nil
	}
	m := &l.copies[member].memory
	for i := l.match(m); i < uint64(len(l.decided)); i++ {
		if l.decided[i].in < term {
			return fmt.Errorf("leader completeness: %x leads term %d without entry %d, which was decided in term %d",
				member, term, i+1, l.decided[i].in)
		}
	}
	return nil
}

// Decide records that a member, in term in, learns that the entry (index, term) is decided.
func (l *Ledger) Decide(member, in, index, term, digest uint64) error {
	return l.decide(member, index, decision{term: term, digest: digest, in: in})
}

// DecideVoid is Decide for an entry without a value.
func (l *Ledger) DecideVoid(member, in, index, term, digest uint64) error {
	return l.decide(member, index, decision{term: term, digest: digest, in: in, void: true})
}

func (l *Ledger) decide(member, index uint64, made decision) error {
	if l.Apart {
		for uint64(len(l.decided)) < index { // up to the number of decisions
			l.decided = append(l.decided, decision{})
		}
		return nil
	}
	if n := uint64(len(l.decided)); index <= n {
		if d := &l.decided[index-1]; d.term != made.term || d.digest != made.digest {
			return fmt.Errorf("member %x decides (%d, term %d), digest %x; decided was term %d, digest %x", member, index,
				made.term, made.digest, d.term, d.digest)
		}
		return nil
	} else if index > n+1 {
		return fmt.Errorf("member %x decides entry %d; %d is next", member, index, n+1)
	}
	if l.leaders[made.in] != member && !l.Epochs {
		return fmt.Errorf("member %x decides entry %d without being the leader of term %d", member, index, made.in)
	}
	memory := &l.copies[member].memory
	made.by, _ = memory.configuration()
	if l.Hints {
		made.by = memory.configurationAt(index) // later ones were decided in the same step
	}
	if e := memory.at(index); e != nil && e.Voters != nil {
		l.config = index
		made.by = e.Voters // nothing else is active before it is decided
	}
	l.decided = append(l.decided, made)
	return l.held(index, "decided")
}

// Retained judges that the last decided entry, and so all before it, is still on the disks of a quorum of its voters.
func (l *Ledger) Retained() error {
	if len(l.decided) == 0 || l.Apart {
		return nil
	}
	last := uint64(len(l.decided))
	for index := last; l.Epochs && index > l.leastMatch(); index-- {
		if err := l.held(index, "decided earlier"); err != nil {
			return err
		}
	}
	return l.held(last, "decided earlier")
}

// leastMatch is the index up to which all members' logs agree with the decisions.
func (l *Ledger) leastMatch() uint64 {
	least := uint64(len(l.decided))
	for _, id := range l.members() {
		least = min(least, l.match(&l.copies[id].disk))
	}
	return least
}

func (l *Ledger) held(index uint64, how string) error {
	by := l.decided[index-1].by
	if l.Epochs && l.decided[index-1].void {
		return nil // also where the others have not begun behind a seal
	}
	if by == nil || !l.Quorums.Writes(by, func(m uint64) bool {
		c := l.copies[m]
		return c != nil && l.holds(&c.disk, index)
	}) {
		return fmt.Errorf("entry %d, %s, is not on the disks of a quorum of %v: %s", index, how, by, l.disks())
	}
	return nil
}

// holds reports whether an image has all decisions up to an index. The last entries may be in cells: the member has
// accepted them there, and does not know that they are decided. With many leaders, each entry has a quorum of its
// own.
func (l *Ledger) holds(m *image, index uint64) bool {
	if l.Epochs {
		e, d := m.accepted(index), &l.decided[index-1]
		return d.void || index <= l.match(m) || e != nil && e.Term == d.term && e.Digest == d.digest
	}
	for at := l.match(m) + 1; at <= index; at++ {
		e, d := m.accepted(at), &l.decided[at-1]
		if e == nil || e.Term != d.term || e.Digest != d.digest {
			return false
		}
	}
	return true
}

func (l *Ledger) disks() string {
	s := ""
	for _, id := range l.members() {
		s += fmt.Sprintf("%x:%d ", id, l.match(&l.copies[id].disk))
	}
	return s
}

// match returns the index up to which an image agrees with the decisions.
func (l *Ledger) match(m *image) uint64 {
	n := uint64(len(l.decided))
	if m.base > n || m.base > 0 && l.decided[m.base-1].term != m.baseTerm {
		return 0
	}
	m.matched = max(m.matched, m.base)
	for m.matched < n {
		e, d := m.at(m.matched+1), &l.decided[m.matched]
		if e == nil || e.Term != d.term || e.Digest != d.digest {
			break
		}
		m.matched++
	}
	return m.matched
}

// Decided is the number of decided entries.
func (l *Ledger) Decided() uint64 { return uint64(len(l.decided)) }

// DecidedBy returns the voters whose quorum decided an entry.
func (l *Ledger) DecidedBy(index uint64) *Voters { return l.decided[index-1].by }

// Last is the last entry of a member's log in memory: index and term.
func (l *Ledger) Last(member uint64) (index, term uint64) {
	m := &l.copies[member].memory
	term, _ = m.termAt(m.last())
	return m.last(), term
}

// Configurations returns the memberships that may be active on some disk: the last
// decided one and those after it.
func (l *Ledger) Configurations() []*Voters {
	var out []*Voters
	for _, id := range l.members() {
		c := l.copies[id]
		for _, m := range [...]*image{&c.disk, &c.memory} {
			if l.Epochs {
				out = m.configurations(l.config, out)
				continue
			}
			if v, index := m.configuration(); v != nil && index >= l.config && !slices.Contains(out, v) {
				out = append(out, v)
			}
			for i := m.last() + 1; ; i++ { // they may be decided
				e := m.accepted(i)
				if e == nil {
					break
				}
				if e.Voters != nil && !slices.Contains(out, e.Voters) {
					out = append(out, e.Voters)
				}
			}
		}
	}
	return out
}

func (l *Ledger) members() []uint64 { return slices.Sorted(maps.Keys(l.copies)) }

// Logged reports whether the log on a member's disk has exactly that entry, or a snapshot in its place.
func (l *Ledger) Logged(member, index, term uint64) bool {
	c := l.copies[member]
	if c == nil {
		return false
	}
	t, ok := c.disk.termAt(index)
	return index < c.disk.base || ok && t == term
}

// DurableTerm is the term of the entry at an index of a member's disk; 0 if it has none.
func (l *Ledger) DurableTerm(member, index uint64) uint64 {
	c := l.copies[member]
	if c == nil {
		return 0
	}
	t, _ := c.disk.termAt(index)
	return t
}
