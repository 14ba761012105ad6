package order

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Tail tracks which rounds one instance's log fills on a member, up to the last appended entry, whether it will be
// committed or not. Every member has the logs of all instances. So a leader on this member learns of another
// instance's batch as soon as it is appended here (docs/internals/niagara.md, 3.2, eager on append). Not safe for
// concurrent use.
type Tail struct {
	instance protocol.InstanceID
	// alone: the log began without rounds. A base has none then until the first round is over.
	alone bool
	// No entry up to committed will be replaced. start is what is filled up to there.
	committed protocol.Index
	start     fill
	// fills[i] is what is filled up to entry committed+1+i; rounds never fall.
	fills queue[fill]
	want  Slot // never falls
	// ahead are entries after the end, ascending, that may come into the log and then fill a slot.
	ahead []protocol.Index
}

// fill is the rounds that a log fills up to one of its entries.
type fill struct {
	rounds protocol.Round
	// batch and skip are the last entries of these kinds up to there; 0: none since the base.
	batch, skip protocol.Index
	// alone: there are no rounds up to there.
	alone bool
}

// NewTail returns the tail of a log that begins after base. alone: the global log began with one instance, without
// rounds.
func NewTail(instance protocol.InstanceID, base *protocol.Base, alone bool) *Tail {
	t := &Tail{instance: instance, alone: alone}
	t.Reset(base)
	return t
}

// Reset starts again after a snapshot.
func (t *Tail) Reset(base *protocol.Base) {
	t.committed, t.start = base.Index, fill{rounds: base.Round, alone: t.alone && base.Round == 0}
	t.fills.cut(0)
	t.passed(base.Index)
}

// Ahead records that an entry after the end may come into the log, where a log has only what is decided. The slot that
// it would fill is wanted as if it had come, behind all others that are known. Entries that never come only make others
// skip further than they must.
func (t *Tail) Ahead(e *protocol.Entry) {
	if e.Index <= t.End() || e.Kind == protocol.EntrySkip || e.Kind == protocol.EntryNoop ||
		e.Kind == protocol.EntryEmpty {
		return
	}
	at, known := slices.BinarySearch(t.ahead, e.Index)
	if known {
		return
	}
	t.ahead = slices.Insert(t.ahead, at, e.Index)
	t.wanted(Slot{t.Round() + protocol.Round(len(t.ahead)), t.instance})
}

// passed forgets entries that are not ahead any more.
func (t *Tail) passed(end protocol.Index) {
	n := 0
	for n < len(t.ahead) && t.ahead[n] <= end {
		n++
	}
	if n > 0 {
		t.ahead = slices.Delete(t.ahead, 0, n)
	}
}

// Append records an appended entry. It replaces everything from its index on.
func (t *Tail) Append(e *protocol.Entry) {
	if e.Index <= t.committed || e.Index > t.End()+1 {
		panic(fmt.Sprintf("order: entry %d appended to instance %d, which has %d, of these %d for good", e.Index, t.instance,
			t.End(), t.committed))
	}
	t.fills.cut(int(e.Index - t.committed - 1))
	t.passed(e.Index)
	f := t.last()
	if f.alone {
		t.fills.push(t.after(f, e))
		return
	}
	switch e.Kind {
	case protocol.EntrySkip:
		f.rounds, f.skip = max(f.rounds, e.Round()), e.Index
	case protocol.EntryBatch, protocol.EntryGroup:
		f.rounds, f.batch = f.rounds+1, e.Index
		t.wanted(Slot{f.rounds, t.instance})
	case protocol.EntryConfig, protocol.EntryLane, protocol.EntryGeneration:
		t.wanted(Slot{f.rounds + 1, t.instance}) // the instance's turn in that round
	case protocol.EntryEmpty: // it does nothing. Skips may end an epoch, and so bring one: it must not bring skips
	case protocol.EntryReshape, protocol.EntrySeal:
		f.rounds, f.batch = f.rounds+1, e.Index
		t.wanted(Slot{f.rounds + 1, 0}) // it takes effect when its round is over
	}
	t.fills.push(f)
}

// after is what is filled after an entry of a log without rounds.
func (t *Tail) after(f fill, e *protocol.Entry) fill {
	switch {
	case e.Kind.Commands():
		f.batch = e.Index
	case e.Kind == protocol.EntryReshape && wanted(e) > 1:
		f.alone, f.rounds, f.batch = false, begunRounds, e.Index
	}
	return f
}

// Cut records that the entries after an index were removed and not replaced yet.
func (t *Tail) Cut(last protocol.Index) {
	if last < t.End() {
		t.fills.cut(int(last - t.committed))
	}
}

func (t *Tail) wanted(s Slot) {
	if t.want.Compare(s) < 0 {
		t.want = s
	}
}

func (t *Tail) last() fill {
	if n := t.fills.len(); n > 0 {
		return *t.fills.at(n - 1)
	}
	return t.start
}

// Committed records that no entry up to an index, which is in the log, will be replaced.
func (t *Tail) Committed(index protocol.Index) {
	if index <= t.committed {
		return
	}
	n := int(index - t.committed)
	t.start = *t.fills.at(n - 1)
	t.fills.drop(n)
	t.committed = index
}

// End is the index of the last entry.
func (t *Tail) End() protocol.Index { return t.committed + protocol.Index(t.fills.len()) }

// Round is the number of rounds that the log fills.
func (t *Tail) Round() protocol.Round { return t.last().rounds }

// CommittedRound is the number of rounds that the committed part of the log fills.
func (t *Tail) CommittedRound() protocol.Round { return t.start.rounds }

// Want is the slot up to which all instances must fill theirs, so that everything that was ever appended here can be
// consumed. Skips want no slot: otherwise instances would make each other skip forever.
func (t *Tail) Want() Slot { return t.want }

// Busy reports whether the log has a batch that is not known to be committed, or may get one.
func (t *Tail) Busy() bool { return t.last().batch > t.committed || len(t.ahead) > 0 }

// Skipping reports whether the log has a skip that is not known to be committed.
func (t *Tail) Skipping() bool { return t.last().skip > t.committed }

// Check verifies the invariants.
func (t *Tail) Check() error {
	last := t.start
	for i := range t.fills.len() {
		f := *t.fills.at(i)
		if f.rounds < last.rounds {
			return fmt.Errorf("order: instance %d: %d rounds filled after %d", t.instance, f.rounds, last.rounds)
		}
		last = f
	}
	if !slices.IsSorted(t.ahead) || len(t.ahead) > 0 && t.ahead[0] <= t.End() {
		return fmt.Errorf("order: instance %d: entries ahead of %d: %v", t.instance, t.End(), t.ahead)
	}
	return nil
}
