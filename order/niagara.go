package order

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Niagara weaves instances into the global log: round by round, in each round one slot of
// each instance (docs/niagara.md, 3.1). A batch fills one slot, an EntrySkip all up to its
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
	// reshape is how many instances there are from the next round on; 0: as many as now, as
	// at the begin of every round. The last EntryReshape of a round counts.
	reshape int
	// fresh is the lowest id that was never given; above all strands' ids.
	fresh protocol.InstanceID
}

// strand is what is known of one instance.
type strand struct {
	at Point
	// added == at.Index + waiting.len(): nothing is lost between Add and Next.
	added   protocol.Index
	waiting queue[protocol.Entry]
}

// NewNiagara returns the order of woven instances that continues at a cursor.
func NewNiagara(from Cursor) *Niagara {
	n := &Niagara{}
	n.set(from)
	return n
}

// set goes to a cursor that is not behind, and keeps what strands have beyond its points.
func (n *Niagara) set(to Cursor) {
	strands := make([]strand, len(to.Points))
	for i, p := range to.Points {
		s := &strands[i]
		if old := n.strand(p.Instance); old != nil && old.added > p.Index {
			*s = *old
			s.waiting.drop(int(p.Index - old.at.Index))
		}
		s.at, s.added = p, max(s.added, p.Index)
	}
	n.strands, n.round, n.position, n.fresh, n.reshape = strands, to.Turn.Round, to.Position, to.Fresh, to.Reshape
	n.next = slices.IndexFunc(strands, func(s strand) bool { return s.at.Instance == to.Turn.Instance })
	if n.next < 0 {
		panic(fmt.Sprintf("order: the turn of instance %d, which is not in force", to.Turn.Instance))
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
	s.waiting.push(entries...)
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

// leap goes through the rounds that all instances skip at once, so that idle rounds cost
// nothing, however many. It is called where a round begins.
func (n *Niagara) leap() {
	to := protocol.Round(0)
	for i := range n.strands {
		w := &n.strands[i].waiting
		if w.len() == 0 || w.at(0).Kind != protocol.EntrySkip {
			return
		}
		if r := w.at(0).Round(); i == 0 || r < to {
			to = r
		}
	}
	if to <= n.round {
		return
	}
	// The last of these rounds is gone through as usual: it ends the skips that end there.
	for i := range n.strands {
		n.strands[i].at.Round = to - 1
	}
	n.round = to
}

// fill consumes what an instance has for its slot and reports whether that is filled.
func (n *Niagara) fill(s *strand, out []Placed) ([]Placed, bool) {
	for s.waiting.len() > 0 {
		e := s.waiting.at(0)
		switch e.Kind {
		case protocol.EntrySkip:
			if to := e.Round(); s.at.Round < to {
				if s.at.Round++; s.at.Round == to {
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
			n.reshape = min(max(1, e.Instances()), MaxInstances)
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
	e := s.waiting.at(0)
	out = append(out, Placed{Instance: s.at.Instance, First: n.position + 1, Entry: *e})
	n.position += protocol.Position(e.Width())
	s.pop()
	return out
}

func (s *strand) pop() {
	e := s.waiting.at(0)
	s.at.Index, s.at.Term = e.Index, e.Term
	s.waiting.drop(1)
}

// endRound begins the next round, with other instances if an EntryReshape said so. Ids are
// never used again: the instances that are retired are those with the highest.
func (n *Niagara) endRound(out []Placed) []Placed {
	ended, want := n.round, n.reshape
	n.next, n.round, n.reshape = 0, n.round+1, 0
	if want == 0 {
		return out
	}
	for len(n.strands) < want {
		n.strands = append(n.strands, strand{at: Point{Instance: n.fresh, Round: ended}})
		n.fresh++
	}
	clear(n.strands[want:])
	n.strands = n.strands[:want]
	c := n.Cursor()
	out = append(out, Placed{First: n.position + 1, Entry: protocol.NewReshape(want), Round: ended, Shape: c.Instances()})
	n.position++
	return out
}

// Cursor implements [Order].
func (n *Niagara) Cursor() Cursor {
	c := Cursor{
		Position: n.position, Fresh: n.fresh, Points: make([]Point, len(n.strands)),
		Turn:    Turn{Round: n.round, Instance: n.strands[n.next].at.Instance},
		Reshape: n.reshape,
	}
	for i := range n.strands {
		c.Points[i] = n.strands[i].at
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
	if n.next == 0 && n.reshape != 0 {
		return fmt.Errorf("order: round %d begins before the shape changed", n.round)
	}
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
		case s.added != s.at.Index+protocol.Index(s.waiting.len()):
			return fmt.Errorf("order: instance %d: %d waiting between %d and %d", s.at.Instance, s.waiting.len(), s.at.Index, s.added)
		}
	}
	return nil
}
