package instance

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// InstanceRounds is what one instance on this member has to do with the merging: what its log fills, what it wants of
// the others, and whether this member could make it skip.
type InstanceRounds struct {
	Instance protocol.InstanceID
	// Want is the furthest slot that the instance wants the others to reach. Round is how many
	// rounds its own log fills.
	Want  order.Slot
	Round protocol.Round
	// Told is the furthest slot that the others want, as other members say.
	Told order.Slot
	// Able says that the instance is led here, and that its last skip is committed. Idle says that
	// it has had no batch for a while.
	Able, Idle bool
}

// WantedRounds brings together what the instances of one member want of each other. So those that are
// led here skip before a member waits for them (docs/internals/niagara.md, 3.2: eager on append). Every
// instance says after each turn how it stands, and learns what the others want. It is a pure rule;
// not safe for concurrent use.
type WantedRounds struct {
	// threads has one element for each hosted instance that has said how it stands, ascending by
	// instance.
	threads []InstanceRounds
	// first is the furthest want of all, with its instance. second is the furthest want of the
	// other instances. Wants never fall.
	first, second want
	// Risen counts how often a want rose.
	Risen uint64
}

type want struct {
	of   protocol.InstanceID
	turn order.Slot
}

func (w *WantedRounds) find(instance protocol.InstanceID) (int, bool) {
	return slices.BinarySearchFunc(w.threads, instance,
		func(t InstanceRounds, i protocol.InstanceID) int { return cmp.Compare(t.Instance, i) })
}

// Set notes the state of an instance. Other instances should skip for it, and may have no event of
// their own that would make them look. Set appends these to wake.
func (w *WantedRounds) Set(t InstanceRounds, wake []protocol.InstanceID) []protocol.InstanceID {
	at, known := w.find(t.Instance)
	if !known {
		w.threads = slices.Insert(w.threads, at, t)
	}
	rises := !known || w.threads[at].Want.Compare(t.Want) < 0
	w.threads[at] = t
	if !rises {
		return wake
	}
	w.Risen++
	w.rise(want{t.Instance, t.Want})
	for i := range w.threads {
		o := &w.threads[i]
		if i == at || !o.Able {
			continue
		}
		if _, behind := order.Skip(o.Instance, o.Round, t.Want, o.Idle); behind {
			wake = append(wake, o.Instance)
		}
	}
	return wake
}

func (w *WantedRounds) rise(to want) {
	switch {
	case to.of == w.first.of:
		w.first.turn = to.turn
	case w.first.turn.Compare(to.turn) < 0:
		w.first, w.second = to, w.first
	case w.second.turn.Compare(to.turn) < 0:
		w.second = to
	}
}

// Want is the furthest slot that any instance but this one wants.
func (w *WantedRounds) Want(instance protocol.InstanceID) order.Slot {
	if instance == w.first.of {
		return w.second.turn
	}
	return w.first.turn
}

// Forget leaves out an instance that is retired. What it wanted does not count any more.
func (w *WantedRounds) Forget(instance protocol.InstanceID) {
	if at, known := w.find(instance); known {
		w.threads = slices.Delete(w.threads, at, at+1)
		w.first, w.second = want{}, want{}
		for i := range w.threads {
			w.rise(want{w.threads[i].Instance, w.threads[i].Want})
		}
	}
}

// Check verifies the invariants.
func (w *WantedRounds) Check() error {
	for i := 1; i < len(w.threads); i++ {
		if w.threads[i-1].Instance >= w.threads[i].Instance {
			return fmt.Errorf("weaver: instance %d after %d", w.threads[i].Instance, w.threads[i-1].Instance)
		}
	}
	for i := range w.threads {
		if t := &w.threads[i]; t.Instance != w.first.of && w.second.turn.Compare(t.Want) < 0 ||
			w.first.turn.Compare(t.Want) < 0 {
			return fmt.Errorf("weaver: instance %d wants more than %v and %v", t.Instance, w.first, w.second)
		}
	}
	return nil
}

// Load is how much of this member's own work an instance has.
type Load struct {
	Leads   bool           // it is led here
	Led     bool           // its leader is known
	Pending int            // batches that are pending
	Round   protocol.Round // how many rounds its log fills
}

// Prefer chooses which of n instances, in their order, takes this member's next batch. One that is led here comes
// first, then one whose leader is known. Of these it takes the first with few batches pending: the others skip ahead of
// it, and cost nothing. As long as one event loop and its links carry the load, that is always the same one. A large
// batch goes to the instance with the least to do, and of these to the one that is most behind
// (docs/internals/niagara.md, 3.2: it need not skip then).
func Prefer(n int, large bool, load func(i int) Load) int {
	best, most := 0, load(0)
	for i := 1; i < n; i++ {
		if l := load(i); l.before(most, large) {
			best, most = i, l
		}
	}
	return best
}

// fewBatches is the number of pending batches up to which small batches stay with an instance. The log of another one
// is ahead, so all others would have to skip at once. An instance with pending batches proposes a small one every
// adaptiveInterval (see Instance.Room). So it has this many after 8 ms, when a quorum is far away or its links are
// full. A large batch gains by links and an event loop of its own: for it the number is one.
const fewBatches = 32

// fullBatch is how many bytes make a batch large that takes no more commands.
const fullBatch = 16 << 10

// Large reports whether a batch, of that size in bytes and full or not, is large. It is not smaller than one that
// leaves at once, so several instances do not make batches smaller.
func Large(bytes int, full bool) bool { return bytes >= largeBatch || full && bytes >= fullBatch }

func (l Load) before(o Load, large bool) bool {
	few := fewBatches
	if large {
		few = 1
	}
	switch {
	case l.Leads != o.Leads:
		return l.Leads
	case l.Led != o.Led:
		return l.Led
	}
	if a, b := max(l.Pending, few), max(o.Pending, few); a != b {
		return a < b
	}
	return large && l.Round < o.Round
}

// ReadThrough is the instance that is asked first for the read index of a merged log: the one whose log fills the
// fewest rounds here. So the others have filled the rounds before its next slot, and nothing waits for them
// (docs/internals/niagara.md, 3.3, the rule of one instance). 0: there is only one.
func ReadThrough(s Siblings) protocol.InstanceID {
	ids := s.IDs()
	if len(ids) == 1 {
		return 0
	}
	least, round := 0, s.Load(0).Round
	for i := 1; i < len(ids); i++ {
		if r := s.Load(i).Round; r < round {
			least, round = i, r
		}
	}
	return ids[least]
}
