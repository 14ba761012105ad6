package multipaxos

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// span is a run of a segment's slots.
type span struct{ from, to protocol.Index }

// spans are slots of a segment, as runs that are ascending and do not touch.
type spans []span

// find is the place of the first run that ends at a slot or after it.
func (s spans) find(i protocol.Index) (at int, has bool) {
	at, _ = slices.BinarySearchFunc(s, i, func(x span, i protocol.Index) int { return cmp.Compare(x.to, i) })
	return at, at < len(s) && s[at].from <= i
}

// has reports whether a slot of the segment is among them.
func (s spans) has(i protocol.Index) bool {
	_, has := s.find(i)
	return has
}

// with is the spans and one more slot.
func (s spans) with(g *segment, i protocol.Index) spans {
	at, has := s.find(i)
	if has {
		return s
	}
	left := at > 0 && g.after(s[at-1].to) == i
	right := at < len(s) && g.after(i) == s[at].from
	switch {
	case left && right:
		s[at-1].to = s[at].to
		return slices.Delete(s, at, at+1)
	case left:
		s[at-1].to = i
	case right:
		s[at].from = i
	default:
		return slices.Insert(s, at, span{i, i})
	}
	return s
}

// within are the slots of a segment in the spans, one after the other. What another member sent may be beyond
// the segment.
func (s spans) within(g *segment, yield func(protocol.Index)) {
	for _, x := range s {
		for i := g.after(max(x.from, 1) - 1); i <= min(x.to, g.last); i = g.after(i) {
			yield(i)
		}
	}
}

// beyond are the slots in the spans after one.
func (s spans) beyond(i protocol.Index) spans {
	at, has := s.find(i + 1)
	out := slices.Clone(s[at:])
	if has {
		out[0].from = max(out[0].from, i+1)
	}
	return out
}

func (x span) String() string {
	if x.from == x.to {
		return fmt.Sprint(x.from)
	}
	return fmt.Sprintf("%d…%d", x.from, x.to)
}
