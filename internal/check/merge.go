package check

import (
	"fmt"
	"iter"
	"slices"
)

// Merge tracks the decisions of every instance, and judges the places of members in the global log by the invariants
// of docs/internals/niagara.md, 3.7. It computes a member's place from the entries of each instance that the member
// has (N2). So members with the same entries are at the same place (N1).
type Merge struct {
	logs   map[uint64]*mergedLog
	shapes []shape // ascending by start; never empty
	fresh  uint64  // the lowest instance that never existed
	// alone: the log has one instance and no rounds yet. Then each entry covers a position.
	alone bool
	// seals are decided, without a verdict, in their order. See sealed.go.
	seals []openSeal
	// stops are all seals of this part, with or without a verdict.
	stops []stop
	// ends are the last entries of the instances in the global log, if the log is sealed; else nil. next is its part
	// behind the seal then.
	ends map[uint64]uint64
	next *Merge
}

// shape has the active instances from a round on, ascending.
type shape struct {
	start     uint64
	instances []uint64
	// points are their last entries consumed before it, and position the covered positions; known only when everything
	// before it is decided.
	points   []uint64
	position uint64
	known    bool
}

// mergedLog is what an instance decided. Element i is about the entries 1 … i.
type mergedLog struct {
	filled []uint64 // rounds that they fill; ascending
	places []uint64 // positions that they cover
	wanted uint64   // the last one that covers any, and does not wait
}

// Slots is the effect of an entry in the global log: it fills the next slot of its instance, or all slots up to a
// round, or none; and the number of positions that it covers.
type Slots struct {
	Fills   bool
	SkipsTo uint64
	Covers  uint64
	// Waits: nothing needs the entry's place, so none of the other instances skips for it.
	Waits bool
	// Instances is the number of instances from the next round on; 0: as many as before.
	Instances int
	Seal      *Seal // nil: it is none
}

// Cut is a place in the global log: the next slot, the number of covered positions, and the last consumed entry of
// each active instance.
type Cut struct {
	Round, Instance   uint64
	Position          uint64
	Instances, Points []uint64
}

// NewMerge returns the judge of a global log that is merged from the given number of instances. alone: it begins
// without rounds. The first change to several instances is the end of round 1 then.
func NewMerge(instances int, alone bool) *Merge {
	w := &Merge{fresh: 1, alone: alone}
	w.open(instances, 0, 0)
	return w
}

// open begins with a number of instances, after a round and a position.
func (w *Merge) open(instances int, round, position uint64) {
	w.logs = map[uint64]*mergedLog{}
	first := shape{start: round + 1, known: true, points: make([]uint64, instances), position: position}
	for range instances {
		first.instances = append(first.instances, w.begin(round))
	}
	w.shapes = []shape{first}
}

// begin adds a new instance, which begins after a round.
func (w *Merge) begin(after uint64) uint64 {
	w.fresh++
	w.logs[w.fresh-1] = &mergedLog{filled: []uint64{after}, places: []uint64{0}}
	return w.fresh - 1
}

// Decide records the next entry that an instance decided.
func (w *Merge) Decide(instance uint64, s Slots) {
	if w = w.of(instance); w.ends != nil {
		s.Seal, s.Instances = nil, 0 // it is void
	}
	l := w.logs[instance]
	if w.alone {
		s = w.decideAlone(s)
	}
	last := len(l.filled) - 1
	filled := max(l.filled[last], s.SkipsTo) // a skip never takes a round back (N4)
	if s.Fills {
		filled++
	}
	l.filled = append(l.filled, filled)
	l.places = append(l.places, l.places[last]+s.Covers)
	if s.Covers > 0 && !s.Waits || s.Instances > 0 || s.Seal != nil {
		l.wanted = uint64(last + 1)
	}
	if s.Seal != nil {
		w.meet(instance, uint64(last+1), filled, s.Seal)
	}
	if s.Instances > 0 {
		w.reshape(filled, s.Instances)
	}
}

// decideAlone is the effect of an entry as long as there are no rounds.
func (w *Merge) decideAlone(s Slots) Slots {
	if s.Instances > 1 {
		w.alone = false
		return s // it fills round 1
	}
	return Slots{Covers: max(1, s.Covers), Seal: s.Seal}
}

// reshape records the number of instances after a round. The first one is always active, and only its entries change
// the number: shapes come in order.
func (w *Merge) reshape(after uint64, instances int) {
	n := shape{start: after + 1, instances: slices.Clone(w.shapes[len(w.shapes)-1].instances)}
	for len(n.instances) < instances {
		n.instances = append(n.instances, w.begin(after))
	}
	n.instances = n.instances[:instances]
	w.shapes = append(w.shapes, n)
}

// Shapes are the numbers of instances that were decided, in order, each with the round from which it
// is active.
func (w *Merge) Shapes() iter.Seq2[int, Start] {
	return func(yield func(int, Start) bool) {
		for part := 0; w != nil; part, w = part+1, w.next {
			for i := range w.shapes {
				if !yield(len(w.shapes[i].instances), Start{part, w.shapes[i].start}) {
					return
				}
			}
		}
	}
}

// End is the last entry of a retired instance that is part of the global log. Later entries of it
// are void.
func (w *Merge) End(instance uint64) uint64 {
	w = w.of(instance)
	for i := 1; i < len(w.shapes); i++ {
		if before, s := &w.shapes[i-1],
			&w.shapes[i]; slices.Contains(before.instances, instance) && !slices.Contains(s.instances, instance) {
			return w.logs[instance].consumed(s.start - 1)
		}
	}
	if w.ends != nil {
		return w.ends[instance]
	}
	return ^uint64(0)
}

// Wanted is the last entry of an instance that covers a position, and for which others skip. Decided entries up to
// there must be consumed soon.
func (w *Merge) Wanted(instance uint64) uint64 { return w.of(instance).logs[instance].wanted }

// shapeAt returns the shape of a round, completed.
func (w *Merge) shapeAt(round uint64) (*shape, error) {
	i := len(w.shapes) - 1
	for i > 0 && w.shapes[i].start > round {
		i--
	}
	for k := 1; k <= i; k++ {
		if err := w.complete(k); err != nil {
			return nil, err
		}
	}
	return &w.shapes[i], nil
}

// complete computes the start of a shape from the shape before it.
func (w *Merge) complete(k int) error {
	before, s := &w.shapes[k-1], &w.shapes[k]
	if s.known {
		return nil
	}
	s.position = before.position + 1 // the change of the shape itself
	s.points = make([]uint64, len(s.instances))
	for i, id := range before.instances {
		l := w.logs[id]
		if l.filled[len(l.filled)-1] < s.start-1 {
			return fmt.Errorf("N2: round %d is over; instance %d has decided %d rounds", s.start-1, id,
				l.filled[len(l.filled)-1])
		}
		to := l.consumed(s.start - 1)
		s.position += l.places[to] - l.places[before.points[i]]
		if i < len(s.instances) {
			s.points[i] = to
		}
	}
	s.known = true
	return nil
}

// At returns the place of a member in the global log if it has added the given number of entries of each instance
// that is active in a round: before the first slot that they do not fill (N2). after has the rounds of each instance
// that the member's snapshot covers, perhaps with a part of the next entry.
func (w *Merge) At(round uint64, added, after []uint64) (Cut, error) {
	s, err := w.shapeAt(round)
	if err != nil {
		return Cut{}, err
	}
	c := Cut{Instances: s.instances, Points: make([]uint64, len(s.instances)), Position: s.position}
	if round == 0 {
		return w.atAlone(c, added)
	}
	if len(added) != len(s.instances) {
		return c, fmt.Errorf("N2: %d instances in round %d; in force are %v", len(added), round, s.instances)
	}
	for i, id := range s.instances {
		l := w.logs[id]
		if added[i] >= uint64(len(l.filled)) {
			return c, fmt.Errorf("N2: entry %d of instance %d is added; decided are %d", added[i], id, len(l.filled)-1)
		}
		if next := max(l.filled[added[i]], after[i]) + 1; c.Instance == 0 || next < c.Round {
			c.Round, c.Instance = next, id
		}
	}
	sealed := w.stopAt(s.instances[0], &c)
	for i, id := range s.instances {
		l := w.logs[id]
		switch {
		case sealed > 0 && i == 0:
			c.Points[i] = sealed - 1
		case id < c.Instance:
			c.Points[i] = l.consumed(c.Round)
		case id == c.Instance:
			c.Points[i] = added[i] // with entries after the last slot that fill none
		default:
			c.Points[i] = l.consumed(c.Round - 1)
		}
		c.Position += l.places[c.Points[i]] - l.places[s.points[i]]
	}
	return c, nil
}

// atAlone is At where there are no rounds.
func (w *Merge) atAlone(c Cut, added []uint64) (Cut, error) {
	l := w.logs[c.Instances[0]]
	if len(added) != 1 || added[0] >= uint64(len(l.filled)) || l.filled[added[0]] > 0 {
		return c, fmt.Errorf("N2: entries %v are added where there are no rounds; decided are %d", added, len(l.filled)-1)
	}
	c.Points[0] = added[0]
	for _, x := range w.stops {
		if x.index <= c.Points[0] && added[0] < x.end {
			c.Points[0] = x.index - 1
		}
	}
	c.Position += l.places[c.Points[0]]
	return c, nil
}

// consumed is the last entry that is completely consumed after this many rounds. A skip may be consumed in part.
func (l *mergedLog) consumed(rounds uint64) uint64 {
	lo, hi := 0, len(l.filled)-1 // the first entry up to which this many are filled
	for lo < hi {
		if mid := (lo + hi) / 2; l.filled[mid] >= rounds {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if l.filled[lo] > rounds {
		lo--
	}
	return uint64(max(lo, 0))
}

// Member judges the place of a member that has added the given number of entries of each instance: see At.
func (w *Merge) Member(member uint64, added, after []uint64, at Cut) error {
	w.Settle()
	want, err := w.of(at.Instances[0]).At(at.Round, added, after)
	if err != nil {
		return fmt.Errorf("member %x: %w", member, err)
	}
	if at.Round != want.Round || at.Instance != want.Instance || at.Position != want.Position ||
		!slices.Equal(at.Instances, want.Instances) || !slices.Equal(at.Points, want.Points) {
		return fmt.Errorf("N2: member %x with entries %v is at round %d of instance %d of %v, position %d, entries %v; "+
			"that is round %d of instance %d of %v, position %d, entries %v",
			member, added, at.Round, at.Instance, at.Instances, at.Position, at.Points, want.Round, want.Instance,
			want.Instances, want.Position, want.Points)
	}
	return nil
}
