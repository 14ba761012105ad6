package order

import (
	"fmt"

	"github.com/braidlog/braid/protocol"
)

// Tail follows what one instance's log fills on a member, to its very end: what is appended
// here, whether it will be committed or not. Every member follows all instances, as leader
// or follower, so that a leader on the same member learns of a sibling's batch from the
// batch itself (SPECS §3.2, eager on append). Not safe for concurrent use.
type Tail struct {
	instance protocol.InstanceID
	// committed is an index up to which nothing will be replaced, and start the rounds
	// that are filled there.
	committed protocol.Index
	start     protocol.Round
	// rounds[i] is how many are filled up to entry committed+1+i; ascending, none < start.
	rounds []protocol.Round
	// batch and skip are the last entries of their kinds; not in the log any more if ≤ committed.
	batch, skip protocol.Index
	want        Turn // never falls
}

// NewTail returns the tail of a log that begins after base.
func NewTail(instance protocol.InstanceID, base *protocol.Base) *Tail {
	t := &Tail{instance: instance}
	t.Reset(base)
	return t
}

// Reset begins anew after a snapshot.
func (t *Tail) Reset(base *protocol.Base) {
	t.committed, t.start, t.rounds = base.Index, base.Round, t.rounds[:0]
	t.batch, t.skip = 0, 0
}

// Append tells of an entry that is appended in place of everything from its index on.
func (t *Tail) Append(e *protocol.Entry) {
	if e.Index <= t.committed || e.Index > t.End()+1 {
		panic(fmt.Sprintf("order: entry %d appended to instance %d, which has %d, of these %d for good", e.Index, t.instance, t.End(), t.committed))
	}
	t.rounds = t.rounds[:e.Index-t.committed-1]
	if t.batch >= e.Index {
		t.batch = e.Index - 1 // perhaps that is one
	}
	if t.skip >= e.Index {
		t.skip = 0
	}
	round := t.Round()
	switch e.Kind {
	case protocol.EntrySkip:
		round = max(round, e.Round())
		t.skip = e.Index
	case protocol.EntryBatch, protocol.EntryReshape:
		round++
		t.batch = e.Index
		t.wanted(Turn{round, t.instance})
	case protocol.EntryConfig:
		t.wanted(Turn{round + 1, t.instance})
	}
	t.rounds = append(t.rounds, round)
}

func (t *Tail) wanted(turn Turn) {
	if t.want.Compare(turn) < 0 {
		t.want = turn
	}
}

// Committed tells that nothing up to an index will be replaced.
func (t *Tail) Committed(index protocol.Index) {
	if index <= t.committed {
		return
	}
	n := int(index - t.committed)
	t.start = t.rounds[n-1]
	t.rounds = append(t.rounds[:0], t.rounds[n:]...)
	t.committed = index
}

// End is the index of the last entry.
func (t *Tail) End() protocol.Index { return t.committed + protocol.Index(len(t.rounds)) }

// Round is how many rounds the log fills.
func (t *Tail) Round() protocol.Round {
	if n := len(t.rounds); n > 0 {
		return t.rounds[n-1]
	}
	return t.start
}

// Want is the slot up to which all instances must fill theirs, so that everything that was
// ever appended here can be consumed. Skips want nothing, or instances would chase each
// other for ever.
func (t *Tail) Want() Turn { return t.want }

// Busy reports whether a batch may be in the log that is not known to be committed.
func (t *Tail) Busy() bool { return t.batch > t.committed }

// Skipping reports whether a skip is in the log that is not known to be committed.
func (t *Tail) Skipping() bool { return t.skip > t.committed }

// Check verifies the invariants.
func (t *Tail) Check() error {
	last := t.start
	for _, r := range t.rounds {
		if r < last {
			return fmt.Errorf("order: instance %d: %d rounds filled after %d", t.instance, r, last)
		}
		last = r
	}
	return nil
}
