package order

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Niagara weaves instances into the global log: round by round, in each round one slot of
// each instance (NIAGARA §3, SPECS §3.1). A batch fills one slot, an EntrySkip all up to its
// round. A configuration and the first entry of a leader's term fill none: they come when
// it is their instance's turn, before what fills the slot.
type Niagara struct {
	// strands has one for each instance in force, ascending by instance; never empty.
	strands []strand
	next    int // strands[next] has the next slot
	// round is the next slot's. Every strand before next has consumed round rounds, all
	// others round − 1.
	round protocol.Round
	// position rises with every entry that is placed.
	position protocol.Position
	// reshape is how many instances there are from the next round on; 0: as many as now.
	reshape *protocol.Entry
	// fresh is the lowest id that was never given; above all strands' ids.
	fresh protocol.InstanceID
}

// strand is what is known of one instance.
type strand struct {
	at Point
	// added == at.Index + len(waiting): nothing is lost between Add and Next.
	added   protocol.Index
	waiting []protocol.Entry
}

// NewNiagara returns the order of woven instances that continues at a cursor.
func NewNiagara(from Cursor) *Niagara {
	n := &Niagara{}
	n.set(from)
	return n
}

// set goes to a cursor, and keeps what strands have beyond its points.
func (n *Niagara) set(to Cursor) {
	strands := make([]strand, len(to.Points))
	for i, p := range to.Points {
		s := strand{at: p, added: p.Index}
		if old := n.strand(p.Instance); old != nil && old.added > p.Index {
			s.added = old.added
			s.waiting = slices.Clone(old.waiting[p.Index-old.at.Index:])
		}
		strands[i] = s
	}
	n.strands, n.round, n.position, n.fresh = strands, to.Turn.Round, to.Position, to.Fresh
	n.next = slices.IndexFunc(strands, func(s strand) bool { return s.at.Instance == to.Turn.Instance })
	n.reshape = nil
	if to.Reshape > 0 {
		e := protocol.NewReshape(to.Reshape)
		n.reshape = &e
	}
}

func (n *Niagara) strand(instance protocol.InstanceID) *strand {
	for i := range n.strands {
		if n.strands[i].at.Instance == instance {
			return &n.strands[i]
		}
	}
	return nil
}

// Add implements [Order]. What an instance that is retired still commits is void.
func (n *Niagara) Add(instance protocol.InstanceID, entries []protocol.Entry) {
	s := n.strand(instance)
	if s == nil {
		if instance >= n.fresh {
			panic(fmt.Sprintf("order: entries of instance %d, which does not exist", instance))
		}
		return
	}
	entries = fresh(instance, s.added, entries)
	s.added += protocol.Index(len(entries))
	s.waiting = append(s.waiting, entries...)
}

// Added implements [Order].
func (n *Niagara) Added(instance protocol.InstanceID) protocol.Index {
	if s := n.strand(instance); s != nil {
		return s.added
	}
	return 0
}

// Next implements [Order].
func (n *Niagara) Next(out []Placed) []Placed {
	for {
		if n.next == 0 {
			n.leap()
		}
		s := &n.strands[n.next]
		filled := false
		if out, filled = n.fill(s, out); !filled {
			return out
		}
		if n.next++; n.next == len(n.strands) {
			out = n.endRound(out)
		}
	}
}

// leap goes through the rounds that all instances skip at once.
func (n *Niagara) leap() {
	to := protocol.Round(0)
	for i := range n.strands {
		s := &n.strands[i]
		if len(s.waiting) == 0 || s.waiting[0].Kind != protocol.EntrySkip {
			return
		}
		if r := s.waiting[0].Round(); i == 0 || r < to {
			to = r
		}
	}
	if n.reshape != nil || to <= n.round {
		return
	}
	// The last of these rounds is gone through one by one: it ends the skips that end there.
	for i := range n.strands {
		n.strands[i].at.Round = to - 1
	}
	n.round = to
}

// fill consumes what an instance has for its slot and reports whether that is filled.
func (n *Niagara) fill(s *strand, out []Placed) ([]Placed, bool) {
	for len(s.waiting) > 0 {
		e := &s.waiting[0]
		switch e.Kind {
		case protocol.EntrySkip:
			if e.Round() > s.at.Round {
				if s.at.Round++; s.at.Round == e.Round() {
					s.pop()
				}
				return out, true
			}
			s.pop() // late or twice: it skips nothing
		case protocol.EntryNoop:
			s.pop()
		case protocol.EntryConfig:
			out = n.place(s, out)
		case protocol.EntryReshape:
			e := *e
			n.reshape = &e
			s.at.Round++
			s.pop()
			return out, true
		default:
			out = n.place(s, out)
			s.at.Round++
			return out, true
		}
	}
	return out, false
}

// place gives a strand's first entry its positions.
func (n *Niagara) place(s *strand, out []Placed) []Placed {
	e := s.waiting[0]
	out = append(out, Placed{Instance: s.at.Instance, First: n.position + 1, Entry: e})
	n.position += protocol.Position(e.Width())
	s.pop()
	return out
}

func (s *strand) pop() {
	s.at.Index, s.at.Term = s.waiting[0].Index, s.waiting[0].Term
	s.waiting[0] = protocol.Entry{}
	if s.waiting = s.waiting[1:]; len(s.waiting) == 0 {
		s.waiting = nil
	}
}

// endRound begins the next round, with other instances if an EntryReshape said so.
func (n *Niagara) endRound(out []Placed) []Placed {
	ended := n.round
	n.next, n.round = 0, n.round+1
	if n.reshape == nil {
		return out
	}
	e := *n.reshape
	n.reshape = nil
	want := max(1, e.Instances())
	for len(n.strands) < want {
		n.strands = append(n.strands, strand{at: Point{Instance: n.fresh, Round: ended}})
		n.fresh++
	}
	clear(n.strands[want:])
	n.strands = n.strands[:want]
	c := n.Cursor()
	out = append(out, Placed{First: n.position + 1, Entry: e, Round: ended, Shape: c.Instances()})
	n.position++
	return out
}

// Cursor implements [Order].
func (n *Niagara) Cursor() Cursor {
	c := Cursor{
		Position: n.position, Fresh: n.fresh, Points: make([]Point, len(n.strands)),
		Turn: Turn{Round: n.round, Instance: n.strands[n.next].at.Instance},
	}
	for i := range n.strands {
		c.Points[i] = n.strands[i].at
	}
	if n.reshape != nil {
		c.Reshape = n.reshape.Instances()
	}
	return c
}

// Install implements [Order].
func (n *Niagara) Install(to Cursor) {
	if at := n.Cursor(); at.Before(&to) {
		n.set(to)
	}
}

// Check implements [Order].
func (n *Niagara) Check() error {
	for i := range n.strands {
		s := &n.strands[i]
		want := n.round - 1
		if i < n.next {
			want = n.round
		}
		switch {
		case i > 0 && n.strands[i-1].at.Instance >= s.at.Instance, s.at.Instance >= n.fresh:
			return fmt.Errorf("order: instance %d at %d of %d, lowest fresh id %d", s.at.Instance, i, len(n.strands), n.fresh)
		case s.at.Round != want:
			return fmt.Errorf("order: instance %d consumed %d rounds, want %d (round %d)", s.at.Instance, s.at.Round, want, n.round)
		case s.added != s.at.Index+protocol.Index(len(s.waiting)):
			return fmt.Errorf("order: instance %d: %d waiting between %d and %d", s.at.Instance, len(s.waiting), s.at.Index, s.added)
		}
	}
	return nil
}
