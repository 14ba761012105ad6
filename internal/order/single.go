package order

import (
	"fmt"

	"github.com/braidlog/braid/protocol"
)

// Single is the order of a single instance: its log is the global log.
type Single struct {
	instance protocol.InstanceID
	waiting  []protocol.Entry

	// added is the index of the last entry added; added ≥ at.Index.
	// len(waiting) == added − at.Index: nothing is lost between Add and Next.
	added protocol.Index
	at    Point
	// position ≥ at.Index: every entry covers at least one position.
	position protocol.Position
}

// newSingle returns the order of one instance that continues at a cursor.
func newSingle(from Cursor) *Single {
	p := from.Points[0]
	return &Single{instance: p.Instance, added: p.Index, at: p, position: from.Position}
}

// Add implements [Order].
func (s *Single) Add(instance protocol.InstanceID, entries []protocol.Entry) {
	if instance != s.instance {
		panic(fmt.Sprintf("order: entries of instance %d, want %d", instance, s.instance))
	}
	entries = fresh(instance, s.added, entries)
	s.added += protocol.Index(len(entries))
	s.waiting = append(s.waiting, entries...)
}

// fresh returns the entries after added, and panics if they do not continue there.
func fresh(instance protocol.InstanceID, added protocol.Index, entries []protocol.Entry) []protocol.Entry {
	for len(entries) > 0 && entries[0].Index <= added {
		entries = entries[1:]
	}
	for i := range entries {
		if entries[i].Index != added+protocol.Index(i)+1 {
			panic(fmt.Sprintf("order: entry %d after %d in instance %d", entries[i].Index, added+protocol.Index(i), instance))
		}
	}
	return entries
}

// Next implements [Order].
func (s *Single) Next(out []Placed) []Placed {
	for i := range s.waiting {
		e := &s.waiting[i]
		out = append(out, Placed{Instance: s.instance, First: s.position + 1, Entry: *e})
		s.position += protocol.Position(e.Width())
		s.at.Index, s.at.Term = e.Index, e.Term
	}
	clear(s.waiting)
	s.waiting = s.waiting[:0]
	return out
}

// Added implements [Order].
func (s *Single) Added(protocol.InstanceID) protocol.Index { return s.added }

// Cursor implements [Order].
func (s *Single) Cursor() Cursor { return Cursor{Position: s.position, Points: []Point{s.at}} }

// Install implements [Order].
func (s *Single) Install(to Cursor) {
	p := to.Points[0]
	if p.Index <= s.at.Index {
		return
	}
	drop := min(len(s.waiting), int(p.Index-s.at.Index))
	clear(s.waiting[:drop])
	s.waiting = s.waiting[drop:]
	s.at, s.added, s.position = p, max(s.added, p.Index), to.Position
}

// Check implements [Order].
func (s *Single) Check() error {
	switch {
	case s.added < s.at.Index:
		return fmt.Errorf("order: added %d < consumed %d", s.added, s.at.Index)
	case uint64(len(s.waiting)) != uint64(s.added-s.at.Index):
		return fmt.Errorf("order: %d waiting between %d and %d", len(s.waiting), s.at.Index, s.added)
	case uint64(s.position) < uint64(s.at.Index):
		return fmt.Errorf("order: position %d < index %d", s.position, s.at.Index)
	}
	return nil
}
