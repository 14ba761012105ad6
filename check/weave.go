package check

import "fmt"

// Weave knows what every instance decided of the global log that is woven from them, and
// judges by SPECS §3.7 where members are in it. It knows nothing of how they get there: where
// a member must be follows from how much of each instance it has (N2), and so it is the same
// wherever that is the same (N1).
type Weave struct {
	// logs are the instances' decided entries; instance r is logs[r-1].
	logs []wovenLog
}

// wovenLog is what an instance decided. Element i is about the entries 1 … i.
type wovenLog struct {
	filled []uint64 // rounds that they fill; ascending
	places []uint64 // positions that they cover
	wanted uint64   // the last one that covers any
}

// Slots is what an entry does in the global log: it fills the next slot of its instance, or
// all up to a round, or none; and it covers that many positions.
type Slots struct {
	Fills   bool
	SkipsTo uint64
	Covers  uint64
}

// Cut is a place in the global log: the slot that comes next, how many positions were
// covered, and the last entry of each instance that was consumed.
type Cut struct {
	Round, Instance uint64
	Position        uint64
	Points          []uint64
}

// NewWeave returns the judge of a global log that is woven from that many instances.
func NewWeave(instances int) *Weave {
	w := &Weave{logs: make([]wovenLog, instances)}
	for i := range w.logs {
		w.logs[i] = wovenLog{filled: []uint64{0}, places: []uint64{0}}
	}
	return w
}

// Decide notes the next entry that an instance decided.
func (w *Weave) Decide(instance uint64, s Slots) {
	l := &w.logs[instance-1]
	last := len(l.filled) - 1
	filled := max(l.filled[last], s.SkipsTo) // a skip never takes a round back (N4)
	if s.Fills {
		filled++
	}
	l.filled = append(l.filled, filled)
	l.places = append(l.places, l.places[last]+s.Covers)
	if s.Covers > 0 {
		l.wanted = uint64(last + 1)
	}
}

// Wanted is the last entry of an instance that covers a position: what is decided up to
// there must be consumed before long.
func (w *Weave) Wanted(instance uint64) uint64 { return w.logs[instance-1].wanted }

// At returns where in the global log a member is that has added so many entries of each
// instance: before the first slot that they do not fill (N2). after is how many rounds of each
// instance its snapshot stands for, perhaps with a part of the entry after those added.
func (w *Weave) At(added, after []uint64) (Cut, error) {
	c := Cut{Points: make([]uint64, len(added))}
	for i, n := range added {
		l := &w.logs[i]
		if n >= uint64(len(l.filled)) {
			return c, fmt.Errorf("N2: entry %d of instance %d is added; decided are %d", n, i+1, len(l.filled)-1)
		}
		if next := max(l.filled[n], after[i]) + 1; c.Instance == 0 || next < c.Round {
			c.Round, c.Instance = next, uint64(i+1)
		}
	}
	for i, n := range added {
		l := &w.logs[i]
		switch r := uint64(i + 1); {
		case r < c.Instance:
			c.Points[i] = l.consumed(c.Round)
		case r == c.Instance:
			c.Points[i] = n // with what follows the last slot and fills none
		default:
			c.Points[i] = l.consumed(c.Round - 1)
		}
		c.Position += l.places[c.Points[i]]
	}
	return c, nil
}

// consumed is the last entry that is fully consumed when so many rounds are, which a skip
// may fill in part.
func (l *wovenLog) consumed(rounds uint64) uint64 {
	lo, hi := 0, len(l.filled)-1 // the first entry up to which so many are filled
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
	return uint64(lo)
}

// Member judges where a member is that has added so many entries of each instance: see At.
func (w *Weave) Member(member uint64, added, after []uint64, at Cut) error {
	want, err := w.At(added, after)
	if err != nil {
		return fmt.Errorf("member %x: %w", member, err)
	}
	same := at.Round == want.Round && at.Instance == want.Instance && at.Position == want.Position
	for i, p := range want.Points {
		same = same && at.Points[i] == p
	}
	if !same {
		return fmt.Errorf("N2: member %x with entries %v is at round %d of instance %d, position %d, entries %v; that is round %d of instance %d, position %d, entries %v",
			member, added, at.Round, at.Instance, at.Position, at.Points, want.Round, want.Instance, want.Position, want.Points)
	}
	return nil
}
