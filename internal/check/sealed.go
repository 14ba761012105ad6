package check

import (
	"cmp"
	"slices"
)

// A seal that counts ends all instances: the log continues behind it in others. A Merge is one part of the log then,
// and the next part is another one. Rounds begin again in each part, positions do not.

// Seal is the effect of an entry that seals the log.
type Seal struct {
	// Instances is the number of instances behind it. Merged: they have rounds.
	Instances int
	Merged    bool
	// End is the last entry of its instance that is part of the global log, if there are no rounds.
	End uint64
	// Counts reports whether it counts where the instances have these last entries.
	Counts func(instances, points []uint64) bool
}

// Start is the place of the global log where instances begin: a round of one of its parts.
type Start struct {
	Part  int
	Round uint64
}

// Compare orders starts as the log does.
func (s Start) Compare(o Start) int {
	return cmp.Or(cmp.Compare(s.Part, o.Part), cmp.Compare(s.Round, o.Round))
}

// openSeal is a seal without a verdict.
type openSeal struct {
	*Seal
	round uint64 // at whose end it takes effect; 0: there are no rounds
}

// of returns the part of the log that has an instance. There must be one.
func (w *Merge) of(instance uint64) *Merge {
	for w.next != nil && instance >= w.next.shapes[0].instances[0] {
		w = w.next
	}
	return w
}

// Part is the number of the part of the log that has an instance, from 0 on.
func (w *Merge) Part(instance uint64) (part int) {
	for last := w.of(instance); w != last; w = w.next {
		part++
	}
	return part
}

// begunRounds is the round that is over where rounds begin behind a seal.
const begunRounds = 1

// meet notes a seal, which an instance has decided in a round.
func (w *Merge) meet(instance, index, round uint64, s *Seal) {
	if w.alone {
		s.End = max(index, s.End)
		if n := len(w.seals); n > 0 {
			s.End = max(s.End, w.seals[n-1].End) // the log stands at an earlier one until then
		}
		round = 0
	}
	w.seals = append(w.seals, openSeal{s, round})
	w.stops = append(w.stops, stop{instance, index, round, s.End})
	slices.SortStableFunc(w.seals, func(a, b openSeal) int { return cmp.Compare(a.round, b.round) })
}

// stop is a seal of an instance. A member stands before it until it has everything up to the end of its round, or up to
// end if there are no rounds.
type stop struct{ instance, index, round, end uint64 }

// stopAt moves a cut in the middle of a round to the seal that is the first instance's entry in it, and returns the
// index of that; 0: there is none.
func (w *Merge) stopAt(first uint64, c *Cut) uint64 {
	for _, x := range w.stops {
		if x.instance == first && x.round == c.Round && c.Instance > first {
			c.Instance = first
			return x.index
		}
	}
	return 0
}

// Settle decides which seals count, as far as that is known. It returns the parts of the log that begin now, in their
// order.
func (w *Merge) Settle() (began []*Merge) {
	for w.next != nil {
		w = w.next
	}
	for len(w.seals) > 0 {
		s := w.seals[0]
		instances, points, position, known := w.placeOf(&s)
		if !known {
			break
		}
		if w.seals = w.seals[1:]; !s.Counts(instances, points) {
			continue
		}
		w.end(&s, instances, points, position)
		w = w.next
		began = append(began, w)
	}
	return began
}

// placeOf is the place at which a seal takes effect, if everything before it is decided: the last entries of the active
// instances, and the position of the log behind the seal.
func (w *Merge) placeOf(s *openSeal) (instances, points []uint64, position uint64, known bool) {
	if s.round == 0 {
		id := w.shapes[0].instances[0]
		l := w.logs[id]
		if known = s.End < uint64(len(l.filled)); known {
			points, position = []uint64{s.End}, w.shapes[0].position+l.places[s.End]+1
		}
		return w.shapes[0].instances, points, position, known
	}
	shape, err := w.shapeAt(s.round)
	if err != nil {
		return nil, nil, 0, false
	}
	position = shape.position + 1
	for i, id := range shape.instances {
		l := w.logs[id]
		if l.filled[len(l.filled)-1] < s.round {
			return nil, nil, 0, false
		}
		to := l.consumed(s.round)
		points = append(points, to)
		position += l.places[to] - l.places[shape.points[i]]
	}
	return shape.instances, points, position, true
}

// end seals this part of the log. What was decided behind the seal is void.
func (w *Merge) end(s *openSeal, instances, points []uint64, position uint64) {
	w.ends, w.seals = map[uint64]uint64{}, nil
	for i, id := range instances {
		w.ends[id] = points[i]
	}
	if s.round > 0 {
		w.shapes = slices.DeleteFunc(w.shapes, func(x shape) bool { return x.start > s.round })
	}
	fresh := uint64(0)
	for i := range w.shapes {
		fresh = max(fresh, slices.Max(w.shapes[i].instances)+1)
	}
	w.next = &Merge{fresh: fresh, alone: !s.Merged}
	round := uint64(0)
	if s.Merged {
		round = begunRounds
	}
	w.next.open(s.Instances, round, position)
}

// Instances are those with which this part of the log begins.
func (w *Merge) Instances() []uint64 { return w.shapes[0].instances }
