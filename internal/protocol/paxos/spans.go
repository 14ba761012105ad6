package paxos

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Span is a run of a segment's slots.
type Span struct{ From, To protocol.Index }

// Spans are slots of a segment, as runs that are ascending and do not touch.
type Spans []Span

// Find is the place of the first run that ends at a slot or after it.
func (s Spans) Find(i protocol.Index) (at int, has bool) {
	at, _ = slices.BinarySearchFunc(s, i, func(x Span, i protocol.Index) int { return cmp.Compare(x.To, i) })
	return at, at < len(s) && s[at].From <= i
}

// Has reports whether a slot of the segment is among them.
func (s Spans) Has(i protocol.Index) bool {
	_, has := s.Find(i)
	return has
}

// With is the spans and one more slot.
func (s Spans) With(g *Segment, i protocol.Index) Spans {
	at, has := s.Find(i)
	if has {
		return s
	}
	left := at > 0 && g.After(s[at-1].To) == i
	right := at < len(s) && g.After(i) == s[at].From
	switch {
	case left && right:
		s[at-1].To = s[at].To
		return slices.Delete(s, at, at+1)
	case left:
		s[at-1].To = i
	case right:
		s[at].From = i
	default:
		return slices.Insert(s, at, Span{i, i})
	}
	return s
}

// Each are the slots of a segment in the spans, one after the other. What another member sent may be beyond
// the segment.
func (s Spans) Each(g *Segment, yield func(protocol.Index)) {
	for _, x := range s {
		for i := g.After(max(x.From, 1) - 1); i <= min(x.To, g.Last); i = g.After(i) {
			yield(i)
		}
	}
}

// After are the slots in the spans after one.
func (s Spans) After(i protocol.Index) Spans {
	at, has := s.Find(i + 1)
	out := slices.Clone(s[at:])
	if has {
		out[0].From = max(out[0].From, i+1)
	}
	return out
}

func (x Span) String() string {
	if x.From == x.To {
		return fmt.Sprint(x.From)
	}
	return fmt.Sprintf("%d…%d", x.From, x.To)
}
