package lane

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
)

// laneMarks is what a log says about lanes up to some index: which lane each member has, and how far it is confirmed.
// It is a function of the entries, so all members have the same one at the same index.
type laneMarks struct {
	marks []laneMark // sorted by member; a member has at most one
	// gen is the last generation. open: it is active, because the voters are still those with which it
	// began. voters are those of the last configuration, nil if that is joint or none came since the first generation.
	gen    uint64
	open   bool
	voters []protocol.MemberID
	// start is the number before the first one of every lane that opens from now on: see openings.
	start uint64
	// again is for a mutant: numbers begin at 1 again.
	again bool
}

// openings is how far the numbers of a lane are apart from those that the same incarnation's lane had before lanes were
// turned off. They never repeat, and do not follow each other: a member that does not know that the lane closed holds
// nothing of it and acknowledges nothing.
const openings = 1 << 40

// laneMark says up to which number the log has a lane.
type laneMark struct {
	lane protocol.Lane
	to   uint64
}

func (s *laneMarks) at(id protocol.MemberID) (int, bool) {
	return slices.BinarySearchFunc(s.marks, id, func(m laneMark, id protocol.MemberID) int {
		return cmp.Compare(m.lane.Member, id)
	})
}

// of returns the lane's mark, nil unless the lane is open.
func (s *laneMarks) of(lane protocol.Lane) *laneMark {
	if i, ok := s.at(lane.Member); ok && s.marks[i].lane == lane {
		return &s.marks[i]
	}
	return nil
}

// member returns the mark of the lane that a member has, nil if it has none.
func (s *laneMarks) member(id protocol.MemberID) *laneMark {
	if i, ok := s.at(id); ok {
		return &s.marks[i]
	}
	return nil
}

// fits reports whether an entry may follow: a part of a lane begins where the last one ended.
func (s *laneMarks) fits(e *protocol.Entry) bool {
	r, ok := e.Range()
	if !ok {
		return true
	}
	m := s.of(r.Lane)
	return m != nil && r.From == m.to+1 && r.To >= r.From
}

// apply takes in the next entry of the log, which fits. Of a configuration it needs the payload.
func (s *laneMarks) apply(e *protocol.Entry) {
	switch e.Kind {
	case protocol.EntryLane:
		i, ok := s.at(e.ID.Session.Member)
		if !ok {
			s.marks = slices.Insert(s.marks, i, laneMark{})
		}
		s.marks[i] = laneMark{lane: e.ID.Session, to: s.start}
	case protocol.EntryGroup:
		if r, ok := e.Range(); ok {
			if !s.fits(e) {
				panic(fmt.Sprintf("raft: entry %d confirms %d to %d of lane %s, of which the log has %+v", e.Index, r.From, r.To,
					r.Lane, s.of(r.Lane)))
			}
			s.of(r.Lane).to = r.To
		}
	case protocol.EntryConfig:
		if s.none() {
			return // the configuration changes nothing, and is expensive to decode
		}
		if c, err := protocol.DecodeConfig(e.Payload); err == nil {
			all := c.All()
			s.marks = slices.DeleteFunc(s.marks, func(m laneMark) bool { return !slices.Contains(all, m.lane.Member) })
			was := s.voters
			if s.voters = nil; !c.Joint() && s.gen > 0 {
				s.voters = c.Voters()
			}
			s.open = s.open && s.voters != nil && slices.Equal(was, s.voters)
			s.turn(&c.Profile)
		}
	case protocol.EntryGeneration:
		s.gen, s.open = e.Generation(), true
	}
}

// none reports whether there are no lanes and no generation.
func (s *laneMarks) none() bool { return len(s.marks) == 0 && s.gen == 0 && !s.open && s.voters == nil }

// turn closes all lanes, and ends the generation, with a profile that turns lanes off.
func (s *laneMarks) turn(p *protocol.Profile) {
	if p.Version == 0 || On.In(p.Values) {
		return
	}
	if len(s.marks) > 0 && !s.again {
		s.start += openings
	}
	s.marks, s.open = nil, false
}

func (s *laneMarks) clone() laneMarks {
	c := *s
	c.marks, c.voters = slices.Clone(s.marks), slices.Clone(s.voters)
	return c
}

func (s *laneMarks) equal(o *laneMarks) bool {
	return slices.Equal(s.marks, o.marks) && s.gen == o.gen && s.open == o.open && slices.Equal(s.voters, o.voters) &&
		s.start == o.start
}

// Lanes are in a snapshot under this name.
const (
	Section = "lanes"
	// sectionOpened has the number of the opening before the rest. Versions that cannot turn lanes off do not know it.
	sectionVersion, sectionOpened uint32 = 1, 2
)

// Derive is what Raft derives from its log about lanes. No lane is open at the beginning, with any members.
func Derive(protocol.Config) protocol.Derived { return &derived{} }

// restored returns what the log up to a snapshot says.
func restored(b *protocol.Base) (laneMarks, error) {
	var d derived
	err := b.Restore(&d)
	return d.laneMarks, err
}

// derived is laneMarks as a protocol.Derived.
type derived struct{ laneMarks }

// Apply is protocol.Derived's.
func (d *derived) Apply(e *protocol.Entry) { d.apply(e) }

// Section is protocol.Derived's. A log that never had a lane has none, as in versions without lanes.
func (d *derived) Section() protocol.Section {
	if d.gen == 0 && len(d.marks) == 0 && d.start == 0 {
		return protocol.Section{}
	}
	var b []byte
	version := sectionVersion
	if d.start > 0 {
		version, b = sectionOpened, binary.AppendUvarint(nil, d.start/openings)
	}
	b = binary.AppendUvarint(b, d.gen<<1|bit(d.open))
	b = binary.AppendUvarint(b, uint64(len(d.voters)))
	for _, id := range d.voters {
		b = binary.AppendUvarint(b, uint64(id))
	}
	for _, m := range d.marks {
		b = message.AppendHigh(b, m.lane, m.to)
	}
	return protocol.Section{Name: Section, Version: version, Data: b}
}

// Restore is protocol.Derived's.
func (d *derived) Restore(s protocol.Section) error {
	if s.Name == "" {
		return nil
	}
	version := sectionVersion
	if s.Version >= sectionOpened {
		version = sectionOpened
	}
	if err := s.Expect(Section, version); err != nil {
		return err
	}
	wrong := &protocol.CorruptError{What: "section", Detail: fmt.Sprintf("lanes: %x", s.Data)}
	b, ok := s.Data, true
	next := func() (v uint64) {
		n := 0
		if v, n = binary.Uvarint(b); n <= 0 {
			ok = false
			return 0
		}
		b = b[n:]
		return v
	}
	start := uint64(0)
	if version == sectionOpened {
		start = next() * openings
	}
	gen := next()
	d.laneMarks = laneMarks{gen: gen >> 1, open: gen&1 == 1, start: start}
	for n := next(); n > 0 && ok; n-- {
		d.voters = append(d.voters, protocol.MemberID(next()))
	}
	for ok && len(b) > 0 {
		var m laneMark
		m.lane, m.to, b, ok = message.NextHigh(b)
		if n := len(d.marks); n > 0 && d.marks[n-1].lane.Member >= m.lane.Member {
			ok = false
		}
		d.marks = append(d.marks, m)
	}
	if !ok {
		return wrong
	}
	return nil
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
