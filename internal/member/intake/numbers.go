package intake

import "fmt"

// numbers are the sequence numbers of what a member proposes in one incarnation. All instances share them, so a batch
// keeps its numbers if another instance brings it. Not safe for concurrent use.
type numbers struct {
	// given is how many numbers were given. They begin with 1.
	given uint64
	// open[head:] are the batches that have numbers, in the order of these, from the first one on
	// that is not settled. Those before it are settled; the first one is not.
	open []numbered
	head int
	// gone is how many batches had numbers before open[head].
	gone uint64
}

// numbered is a batch that has numbers, the first of which is seq.
type numbered struct {
	seq     uint64
	settled bool
}

// assign gives a batch its numbers when it is taken for the first time. Then it also says which
// numbers may be forgotten: those before the first one that is not settled. A batch is settled when
// its outcome is known, whichever instances it went through. An answer that comes before it is
// applied does not settle it.
func (n *numbers) assign(b *Batch, early bool) {
	if b.turn > 0 {
		return
	}
	if n.head > len(n.open)/2 && len(n.open) == cap(n.open) {
		n.open = append(n.open[:0], n.open[n.head:]...)
		n.head = 0
	}
	seq := n.given + 1
	n.open = append(n.open, numbered{seq: seq})
	n.given += uint64(b.Entry.Count)
	b.turn = n.gone + uint64(len(n.open)-n.head)
	b.Entry.ID.Seq, b.Entry.Low = seq, n.open[n.head].seq
	if early {
		b.Entry.Low = seq
	}
}

// settle notes that a batch is settled. It may have no numbers.
func (n *numbers) settle(b *Batch) {
	if b.turn == 0 {
		return
	}
	n.open[n.head+int(b.turn-n.gone)-1].settled = true
	for n.head < len(n.open) && n.open[n.head].settled {
		n.head++
		n.gone++
	}
	if n.head == len(n.open) {
		n.open, n.head = n.open[:0], 0
	}
}

// check verifies the invariants.
func (n *numbers) check() error {
	if n.head > len(n.open) || n.head < len(n.open) && n.open[n.head].settled {
		return fmt.Errorf("proposals: the first of %d batches from %d on is settled", len(n.open), n.head)
	}
	for i, o := range n.open {
		if o.seq > n.given || i > 0 && n.open[i-1].seq >= o.seq {
			return fmt.Errorf("proposals: a batch has number %d of %d, after %d batches", o.seq, n.given, i)
		}
	}
	return nil
}
