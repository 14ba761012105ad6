package instance

import (
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// What an instance committed waits until it is applied: in the queue of the apply loop, and in the
// order while other instances are behind. Payloads wait there up to a bound in bytes. Beyond it
// they are read again later. Envelopes always wait in memory, so two rules bound them too.
//
// A leader takes no new batches while too many of its instance's entries wait in either place. The
// batches stay where proposals wait, which has a bound of its own. The leader still takes what
// moves the cluster on: memberships and skips.
//
// A follower drops appends that bring entries while too many wait in the queue, as a network
// would. Its leader sends them again. What waits in the order does not count for that. The queue
// empties by itself, but the order may wait for an instance that needs this very follower.
//
// So a state machine that is slower than replication makes replication wait in the end, and does
// not fill the memory.

// backlogBytes bounds the envelopes that wait to be applied on a member, of all instances.
const backlogBytes = 128 << 20

// Backlog is how many entries of one instance, on a member with so many instances, may be
// committed and not applied. What is in the log by then may still be committed. Where there are several
// instances an envelope waits twice, the other time for plans: see Planner.
func Backlog(instances int) int {
	entries := backlogBytes / member.EnvelopeBytes
	if instances > 1 {
		entries /= 2 * instances
	}
	return entries
}

// backlog is what waits to be applied, in indexes of the instance's log.
type backlog struct {
	// given is the last committed entry with something to apply. added says how much of the log is
	// in the order, applied how much is applied, both as far as is known. applied ≤ added, and
	// both may be behind.
	given, added, applied protocol.Index
	limit                 protocol.Index // 0: none
	merged                bool           // no other instance hurries for an empty value
	heldUp                uint64
}

// Applied tells the instance how much of it is in the order and how much is applied. For an instance that is not active
// any more, everything counts as applied.
func (in *Instance) Applied(added, applied protocol.Index) {
	in.backlog.added, in.backlog.applied = added, applied
}

// Given is the last committed entry with something to apply.
func (in *Instance) Given() protocol.Index { return in.backlog.given }

// HeldUp counts the messages that were dropped because too much waited to be applied.
func (in *Instance) HeldUp() uint64 { return in.backlog.heldUp }

// noteCommitted notes what is committed. Entries with nothing to apply do not count. No other instance
// hurries for them, so they may wait for long, and nothing is held up because of them.
func (b *backlog) noteCommitted(entries []protocol.Entry) {
	for i := len(entries) - 1; i >= 0; i-- {
		switch k := entries[i].Kind; {
		case k == protocol.EntryNoop, k == protocol.EntrySkip, k == protocol.EntryEmpty && b.merged:
		default:
			b.given = entries[i].Index
			return
		}
	}
}

// beyond reports whether more than the limit waits, if nothing up to done waits.
func (b *backlog) beyond(done protocol.Index) bool {
	return b.limit > 0 && b.given > done && b.given-done > b.limit
}

// holdUp reports whether a message has to wait until more is applied. It is dropped then, and
// comes again.
func (b *backlog) holdUp(m *protocol.Message, brings protocol.Brings) bool {
	hold := false
	switch {
	case len(m.Entries) == 0:
	case brings == protocol.BringsLog:
		hold = b.beyond(b.added)
	case brings == protocol.BringsProposals:
		hold = m.Entries[0].Kind == protocol.EntryBatch && b.beyond(b.applied)
	}
	if hold {
		b.heldUp++
	}
	return hold
}
