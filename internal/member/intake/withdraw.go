package intake

import (
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/protocol"
)

// A command whose proposer waits no longer is withdrawn, if its batch was never handed to a core that
// did not refuse it on the spot. Such a command certainly takes no effect.

// Ticket names a command that was taken, so that it can be withdrawn. The zero value names none.
type Ticket struct {
	Batch *Batch
	At    int // its place among the commands of the batch when it came
}

// withdrawal is a command of a batch that was withdrawn.
type withdrawal struct {
	at  int  // as in its Ticket
	out bool // it is not in the batch any more
}

// Last is the ticket of the command that was taken last, here or in a ClientQueue of these proposals.
func (p *Proposals) Last() Ticket { return p.last }

// took notes the command that was added last to a batch.
func (p *Proposals) took(b *Batch) { p.last = Ticket{b, len(b.Done) - 1} }

// Withdraw withdraws a command that waits. If an instance has its batch, that one decides: then it is
// returned, and is to be asked with Hosted.Withdraw.
func (p *Proposals) Withdraw(t Ticket) (ok bool, instance protocol.InstanceID) {
	switch b := t.Batch; {
	case b == nil || b.gone:
		return false, 0
	case b.taker != 0:
		return false, b.taker
	default:
		return b.WithdrawAt(t.At, p.Mutant), 0
	}
}

// WithdrawAt withdraws one command, unless the batch may have left this member. It leaves the batch
// when that is handed to the core.
func (b *Batch) WithdrawAt(at int, mutant mutant.Name) bool {
	if b.Answered || b.Proposed > 0 && mutant != member.MutantWithdrawSent {
		return false
	}
	i, before := b.place(at)
	if before {
		return false
	}
	now := at
	for _, w := range b.Withdrawn[:i] {
		if w.out {
			now--
		}
	}
	b.Withdrawn = slices.Insert(b.Withdrawn, i, withdrawal{at: at})
	b.Done[now] = unheard
	return true
}

// unheard is the Done of a command that was withdrawn.
func unheard(any, error) {}

// Empty reports whether all commands of the batch were withdrawn.
func (b *Batch) Empty() bool { return b.left() == 0 }

// left is how many commands of the batch were not withdrawn.
func (b *Batch) left() int {
	n := len(b.Done)
	for _, w := range b.Withdrawn {
		if !w.out {
			n--
		}
	}
	return n
}

// DropWithdrawn takes out of a batch the commands that were withdrawn. Their bytes count until the batch is
// settled. It was never proposed, so it is another proposal afterwards, and its numbers were not seen.
func (b *Batch) DropWithdrawn() {
	if b.left() == len(b.Done) || b.Empty() {
		return
	}
	payload, done := make([]byte, 0, len(b.Entry.Payload)), b.Done[:0]
	rest, at := b.Entry.Payload, 0
	for _, d := range b.Done {
		i, found := b.place(at)
		for found && b.Withdrawn[i].out {
			at++
			i, found = b.place(at)
		}
		command, tail, err := protocol.NextCommand(rest)
		if err != nil {
			panic("member: a batch of this member is malformed: " + err.Error())
		}
		if rest = tail; found {
			b.Withdrawn[i].out = true
			b.spared += int64(len(command)) + CommandOverhead
			b.bytes -= int64(len(command))
			b.Entry.Count--
		} else {
			payload, done = protocol.AppendCommand(payload, command), append(done, d)
		}
		at++
	}
	clear(b.Done[len(done):])
	b.Entry.Payload, b.Done = payload, done
}

// place finds a withdrawal by the place of its command.
func (b *Batch) place(at int) (int, bool) {
	return slices.BinarySearchFunc(b.Withdrawn, at, func(w withdrawal, at int) int { return w.at - at })
}
