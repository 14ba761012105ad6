package order

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/protocol"
)

// Niagara merges instances into the global log: round by round, in each round one slot of each instance
// (docs/internals/niagara.md, 3.1). A batch fills one slot, an EntrySkip all slots up to its round. A configuration
// and the first entry of a leader's term fill none: their place is the instance's slot, before the entry that fills
// it.
//
// While one instance is active there is nothing to wait for: each entry has its place as soon as it is added
// (alone.go).
type Niagara struct {
	// logs has one for each instance active, ascending by instance; never empty.
	logs []instanceLog
	next int // logs[next] has the next slot
	// round is that of the next slot. Every log before next has consumed round rounds, all others round − 1.
	round protocol.Round
	// position rises with every entry that is placed.
	position protocol.Position
	// reshape is the number of instances from the next round on; 0: as many as now, which it is at the start of every
	// round. The last EntryReshape of a round counts.
	reshape int
	// fresh is the lowest id that was never given to an instance; it is above the ids of all logs.
	fresh protocol.InstanceID
	// alone: there was one instance from the beginning on. There are no rounds then; round, next and reshape are 0.
	alone bool
	// seals are met, and not known to count or not to count. over: the round has ended in which the first one is.
	seals []OpenSeal
	over  bool

	Mutant mutant.Name // breaks a rule on purpose; only for tests
}

// instanceLog is the known state of one instance's log.
type instanceLog struct {
	at Point
	// added == at.Index + waiting.len(): nothing is lost between Add and Next.
	added   protocol.Index
	waiting queue[protocol.Entry]
	// within: the last slot was filled by the first waiting entry, a skip that goes further.
	within bool
}

// NewNiagara returns the order of merged instances that continues at a cursor.
func NewNiagara(from Cursor) *Niagara {
	n := &Niagara{}
	n.set(from)
	return n
}

// set moves to a cursor that is not behind. Entries after its points continue to wait.
func (n *Niagara) set(to Cursor) {
	logs := make([]instanceLog, len(to.Points))
	for i, p := range to.Points {
		s := &logs[i]
		if old := n.log(p.Instance); old != nil && old.added > p.Index {
			*s = *old
			s.waiting.drop(int(p.Index - old.at.Index))
		}
		s.at, s.added = p, max(s.added, p.Index)
	}
	n.logs, n.round, n.position, n.fresh, n.reshape = logs, to.Next.Round, to.Position, to.Unused(), to.Reshape
	n.seals, n.over = nil, false
	if n.next, n.alone = 0, !to.Merged(); n.alone {
		return
	}
	n.next = slices.IndexFunc(logs, func(s instanceLog) bool { return s.at.Instance == to.Next.Instance })
	if n.next < 0 {
		panic(fmt.Sprintf("order: the next slot is of instance %d, which is not in force", to.Next.Instance))
	}
}

func (n *Niagara) log(instance protocol.InstanceID) *instanceLog {
	for i := range n.logs {
		if n.logs[i].at.Instance == instance {
			return &n.logs[i]
		}
	}
	return nil
}

// Add implements [Order]. It ignores entries of a retired instance.
func (n *Niagara) Add(instance protocol.InstanceID, entries []protocol.Entry) {
	s := n.log(instance)
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
	if s := n.log(instance); s != nil {
		return s.added
	}
	return 0
}

// Placed implements [Order].
func (n *Niagara) Placed(instance protocol.InstanceID) protocol.Index {
	s := n.log(instance)
	if s == nil {
		return 0
	}
	nothing := 0
	for nothing < s.waiting.len() && !orders(s.waiting.at(nothing).Kind) {
		nothing++
	}
	return s.at.Index + protocol.Index(nothing)
}

// orders reports whether an entry is to have a place.
func orders(k protocol.EntryKind) bool { return k != protocol.EntrySkip && k != protocol.EntryNoop }

// Next implements [Order].
func (n *Niagara) Next(out []Placed) []Placed {
	for n.Sealing() == nil {
		if n.over {
			out = n.endRound(out)
		}
		if len(n.logs) == 1 {
			if out = n.nextOfOne(out); n.alone || n.logs[0].waiting.len() == 0 || n.Sealing() != nil {
				return out
			}
		}
		if n.next == 0 {
			n.leap()
		}
		s := &n.logs[n.next]
		filled := false
		if out, filled = n.fill(s, out); !filled && !n.impatient(s) {
			return out
		}
		if n.next+1 < len(n.logs) {
			n.next++
		} else if n.over = len(n.seals) > 0; !n.over {
			out = n.endRound(out)
		}
	}
	return out
}

// impatient skips a slot that is not filled, for a mutant.
func (n *Niagara) impatient(s *instanceLog) bool {
	if n.Mutant != MutantImpatient || n.next+1 == len(n.logs) || n.logs[n.next+1].waiting.len() == 0 {
		return false
	}
	s.at.Round++
	return true
}

// leap passes in one step through the rounds that all instances skip, so idle rounds cost nothing. It is called at
// the start of a round.
func (n *Niagara) leap() {
	to := protocol.Round(0)
	for i := range n.logs {
		w := &n.logs[i].waiting
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
	// The last of these rounds is handled as usual, because skips end there.
	for i := range n.logs {
		n.logs[i].at.Round = to - 1
	}
	n.round = to
}

// fill consumes an instance's entries for its slot and reports whether the slot is filled.
func (n *Niagara) fill(s *instanceLog, out []Placed) ([]Placed, bool) {
	for s.waiting.len() > 0 {
		e := s.waiting.at(0)
		switch e.Kind {
		case protocol.EntrySkip:
			if to := e.Round(); s.at.Round < to {
				s.at.Round++
				if s.within = true; s.at.Round == to {
					s.pop()
				}
				return out, true
			}
			s.pop() // late or repeated: it skips nothing
		case protocol.EntryNoop:
			s.pop()
		case protocol.EntryConfig, protocol.EntryLane, protocol.EntryGeneration, protocol.EntryEmpty:
			out = n.place(s, out)
		case protocol.EntryReshape:
			n.reshape = wanted(e)
			s.at.Round++
			s.pop()
			if n.Mutant == MutantReshapeAtOnce {
				n.finishEarly()
			}
			return out, true
		case protocol.EntrySeal:
			if !n.ready(s, e) {
				return out, false
			}
			n.meet(e)
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

// place assigns positions to the first waiting entry.
func (n *Niagara) place(s *instanceLog, out []Placed) []Placed {
	e := s.waiting.at(0)
	out = append(out, Placed{Instance: s.at.Instance, First: n.position + 1, Entry: *e})
	n.position += protocol.Position(e.Width())
	s.pop()
	return out
}

func (s *instanceLog) pop() {
	e := s.waiting.at(0)
	s.at.Index, s.at.Term = e.Index, e.Term
	s.waiting.drop(1)
	s.within = false
}

// endRound begins the next round, with other instances after an EntryReshape. The instances with the highest ids are
// retired. Ids are never reused.
func (n *Niagara) endRound(out []Placed) []Placed {
	ended, want := n.round, n.reshape
	n.next, n.round, n.reshape, n.over = 0, n.round+1, 0, false
	if want == 0 {
		return out
	}
	first := n.position + 1
	n.position++
	return append(out, Placed{First: first, Entry: protocol.NewReshape(want), Plan: n.resize(want, ended)})
}

// resize continues with a number of instances. New ones begin after a round.
func (n *Niagara) resize(want int, after protocol.Round) *Plan {
	before := n.instances()
	for len(n.logs) < want {
		n.logs = append(n.logs, instanceLog{at: Point{Instance: n.fresh, Round: after}})
		n.fresh++
	}
	clear(n.logs[want:])
	n.logs = n.logs[:want]
	return PlanTo(before, n.Cursor())
}

func (n *Niagara) instances() (ids []protocol.InstanceID) {
	for i := range n.logs {
		ids = append(ids, n.logs[i].at.Instance)
	}
	return ids
}

// finishEarly ends the round early, for a mutant.
func (n *Niagara) finishEarly() {
	for i := n.next + 1; i < len(n.logs); i++ {
		n.logs[i].at.Round++
	}
	n.next = len(n.logs) - 1
}

// Cursor implements [Order].
func (n *Niagara) Cursor() Cursor {
	if n.alone {
		return Cursor{Position: n.position, Points: []Point{n.logs[0].at}}
	}
	c := Cursor{
		Position: n.position, Fresh: n.fresh, Points: make([]Point, len(n.logs)),
		Next:    Slot{Round: n.round, Instance: n.logs[n.next].at.Instance},
		Reshape: n.reshape,
	}
	for i := range n.logs {
		c.Points[i] = n.logs[i].at
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
	if n.alone {
		return n.checkAlone()
	}
	if n.next == 0 && n.reshape != 0 {
		return fmt.Errorf("order: round %d begins before the shape changed", n.round)
	}
	for i := range n.logs {
		s := &n.logs[i]
		want := n.round - 1
		if i < n.next || n.over {
			want = n.round
		}
		switch {
		case i > 0 && n.logs[i-1].at.Instance >= s.at.Instance, s.at.Instance >= n.fresh:
			return fmt.Errorf("order: instance %d at %d of %d, lowest fresh id %d", s.at.Instance, i, len(n.logs), n.fresh)
		case s.at.Round != want:
			return fmt.Errorf("order: instance %d consumed %d rounds, want %d (round %d)", s.at.Instance, s.at.Round, want,
				n.round)
		case s.added != s.at.Index+protocol.Index(s.waiting.len()):
			return fmt.Errorf("order: instance %d: %d waiting between %d and %d", s.at.Instance, s.waiting.len(), s.at.Index,
				s.added)
		}
	}
	return nil
}
