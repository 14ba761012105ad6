package raft

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// laneMarks is what a log says about lanes up to some index: which lane each member has, and up to where
// it is confirmed. It is a function of the entries, so all members have the same one at the same index.
type laneMarks struct {
	marks []laneMark // sorted by member; a member has at most one
}

// laneMark is a lane of which the entries up to a number stand in the log.
type laneMark struct {
	lane protocol.Lane
	to   uint64
}

func (s *laneMarks) at(id protocol.MemberID) (int, bool) {
	return slices.BinarySearchFunc(s.marks, id, func(m laneMark, id protocol.MemberID) int { return cmp.Compare(m.lane.Member, id) })
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
		s.marks[i] = laneMark{lane: e.ID.Session}
	case protocol.EntryGroup:
		if r, ok := e.Range(); ok {
			if !s.fits(e) {
				panic(fmt.Sprintf("raft: entry %d confirms %d to %d of lane %s, of which the log has %+v", e.Index, r.From, r.To, r.Lane, s.of(r.Lane)))
			}
			s.of(r.Lane).to = r.To
		}
	case protocol.EntryConfig:
		if c, err := protocol.DecodeConfig(e.Payload); err == nil {
			all := c.All()
			s.marks = slices.DeleteFunc(s.marks, func(m laneMark) bool { return !slices.Contains(all, m.lane.Member) })
		}
	}
}

func (s *laneMarks) clone() laneMarks { return laneMarks{slices.Clone(s.marks)} }

// Lanes are in a snapshot under this name.
const (
	laneSection        = "lanes"
	laneSectionVersion = 1
)

// Derive is what Raft with lanes derives from its log.
func Derive() protocol.Derived { return &laneDerived{} }

// laneDerived is laneMarks as a protocol.Derived.
type laneDerived struct{ laneMarks }

func (d *laneDerived) Apply(e *protocol.Entry) { d.apply(e) }

func (d *laneDerived) Section() protocol.Section {
	var b []byte
	for _, m := range d.marks {
		b = appendHigh(b, m.lane, m.to)
	}
	return protocol.Section{Name: laneSection, Version: laneSectionVersion, Data: b}
}

func (d *laneDerived) Restore(s protocol.Section) error {
	if err := s.Expect(laneSection, laneSectionVersion); err != nil {
		return err
	}
	d.marks = nil
	for b := s.Data; len(b) > 0; {
		lane, to, rest, ok := nextHigh(b)
		if n := len(d.marks); !ok || n > 0 && d.marks[n-1].lane.Member >= lane.Member {
			return &protocol.CorruptError{What: "section", Detail: fmt.Sprintf("lanes: %x", s.Data)}
		}
		d.marks, b = append(d.marks, laneMark{lane, to}), rest
	}
	return nil
}

// appendHigh appends a lane and a number in it.
func appendHigh(b []byte, lane protocol.Lane, n uint64) []byte {
	b = binary.AppendUvarint(b, uint64(lane.Member))
	b = binary.AppendUvarint(b, lane.Incarnation)
	return binary.AppendUvarint(b, n)
}

// nextHigh reads what appendHigh wrote.
func nextHigh(b []byte) (lane protocol.Lane, n uint64, rest []byte, ok bool) {
	var v [3]uint64
	for i := range v {
		w := 0
		if v[i], w = binary.Uvarint(b); w <= 0 {
			return lane, 0, nil, false
		}
		b = b[w:]
	}
	return protocol.Lane{Member: protocol.MemberID(v[0]), Incarnation: v[1]}, v[2], b, v[0] != 0
}
