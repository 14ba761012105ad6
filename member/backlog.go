package member

import "github.com/braidlog/braid/protocol"

// What an instance committed waits until it is applied: in the queue of the apply loop and, while
// other instances are behind, in the order. Payloads wait there up to a bound in bytes and are read
// again later beyond it. Their envelopes wait in memory, so they are bounded too, by two rules.
//
// A leader takes no new batches while too many of its instance's entries wait in either place: they
// stay where proposals wait, which has a bound of its own. What moves the cluster on, memberships
// and skips, it takes.
//
// A follower drops appends that bring entries while too many wait in the queue, as a network would,
// and its leader sends them again. What waits in the order does not count for that: the queue empties
// by itself, but the order may wait for an instance that needs this very follower.
//
// So a state machine that is slower than replication holds it up in the end, instead of filling the
// memory.

const (
	// backlogBytes bounds the envelopes that wait to be applied on a member, of all instances.
	backlogBytes = 128 << 20
	// envelopeBytes is what an envelope takes in memory at most, with its place in queues.
	envelopeBytes = 256
)

// Backlog is how many entries of an instance, one of so many, may be committed and not applied.
// What is in the log by then may still be committed.
func Backlog(instances int) int { return backlogBytes / envelopeBytes / max(1, instances) }

// backlog is what waits to be applied, in indexes of the instance's log.
type backlog struct {
	// given is the last committed entry with something to apply. added is what of the log is in
	// the order, applied what is applied, as far as is known: applied ≤ added, and both may lag.
	given, added, applied protocol.Index
	limit                 protocol.Index // 0: none
	heldUp                uint64
}

// Applied tells how much of the instance is in the order and how much is applied. Of one that is
// not in force any more everything is.
func (in *Instance) Applied(added, applied protocol.Index) {
	in.backlog.added, in.backlog.applied = added, applied
}

// Given is the last committed entry with something to apply.
func (in *Instance) Given() protocol.Index { return in.backlog.given }

// HeldUp counts the messages that were dropped because too much waited to be applied.
func (in *Instance) HeldUp() uint64 { return in.backlog.heldUp }

// give notes what is committed. What has nothing to apply waits for nobody's sake: no other
// instance hurries for it, so it may stay for long, and holds nothing up.
func (b *backlog) give(entries []protocol.Entry) {
	for i := len(entries) - 1; i >= 0; i-- {
		if k := entries[i].Kind; k != protocol.EntryNoop && k != protocol.EntrySkip {
			b.given = entries[i].Index
			return
		}
	}
}

// beyond reports whether more waits than the limit, if everything up to done does not wait.
func (b *backlog) beyond(done protocol.Index) bool {
	return b.limit > 0 && b.given > done && b.given-done > b.limit
}

// holdUp reports whether a message has to wait until more is applied: it is dropped, and comes
// again.
func (b *backlog) holdUp(m *protocol.Message) bool {
	hold := m.Type == protocol.MsgAppend && len(m.Entries) > 0 && b.beyond(b.added) ||
		m.Type == protocol.MsgPropose && len(m.Entries) > 0 && m.Entries[0].Kind == protocol.EntryBatch && b.beyond(b.applied)
	if hold {
		b.heldUp++
	}
	return hold
}
