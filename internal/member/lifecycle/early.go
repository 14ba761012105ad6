package lifecycle

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// Members come to the place of the global log where an instance begins one after the other. The first
// ones send messages to members that do not have the instance yet. These keep the messages until they
// begin it too. Otherwise the instance would begin with a repetition. No one can decode a message before the
// instance's core is known, so they keep frames.

// earlyBytes bounds the messages that are kept, of all instances that have not begun.
const earlyBytes = 4 << 20

// earlyMessages are frames for instances that are not active yet. The bytes of frames, and of what each takes in
// memory besides them, are at most earlyBytes.
type earlyMessages struct {
	bytes int
	kept  []protocol.Frame
	// since is when the first one came after the last change of the active instances, or when a snapshot was last asked
	// for; 0: none came.
	since time.Duration
}

func earlyCost(f protocol.Frame) int { return len(f) + member.EnvelopeBytes }

// keep takes a message if there is room. What came first is needed first, so nothing makes room for
// it.
func (e *earlyMessages) keep(f protocol.Frame) bool {
	if e.bytes+earlyCost(f) > earlyBytes {
		return false
	}
	e.bytes += earlyCost(f)
	e.kept = append(e.kept, f)
	return true
}

func (e *earlyMessages) sum() (bytes int) {
	for _, f := range e.kept {
		bytes += earlyCost(f)
	}
	return bytes
}

// remove removes and returns the messages of an instance, in the order in which they came.
func (e *earlyMessages) remove(id protocol.InstanceID) (taken []protocol.Frame) {
	e.kept = slices.DeleteFunc(e.kept, func(f protocol.Frame) bool {
		if f.Instance() == id {
			e.bytes -= earlyCost(f)
			taken = append(taken, f)
		}
		return f.Instance() == id
	})
	return taken
}

// forget drops the messages of instances that will not begin here: a snapshot stands for all that
// they did.
func (e *earlyMessages) forget(c *order.Cursor) {
	e.since = 0
	e.kept = slices.DeleteFunc(e.kept, func(f protocol.Frame) bool {
		if c.Retired(f.Instance()) {
			e.bytes -= earlyCost(f)
		}
		return c.Retired(f.Instance())
	})
}

// Receive takes a message for an instance that was not found to be hosted. It is kept undecoded if the instance may
// begin later, as long as there is room. If the instance is hosted by now, Receive returns it. Otherwise it drops the
// message: the instance is retired, or there is no space, and the sender repeats it.
func (n *Instances[I]) Receive(f protocol.Frame) (i I, hosted bool) {
	id := f.Instance()
	if at := slices.Index(n.ids, id); at >= 0 {
		return n.inForce[at], true
	}
	if at := slices.Index(n.behind, id); at >= 0 {
		return n.staying[at], true
	}
	if !n.cursor.Expects(id) || !n.early.keep(f) {
		n.Dropped++
	}
	return i, false
}

// earlyTimeouts is how many election timeouts a member waits for its own logs to lead to an instance of others.
const earlyTimeouts = 2

// Behind is asked after Receive has not found an instance. It returns the instance for which the sender is to be asked
// for a snapshot (see snapshot.StateExchange.Missing), 0: for none. Others have had other instances for long then.
// No one tells a member that joined behind a seal, or that votes nowhere, where its own instances ended.
func (n *Instances[I]) Behind(f protocol.Frame, now, election time.Duration) protocol.InstanceID {
	switch {
	case n.cursor.Keyed || n.cursor.Retired(f.Instance()) || n.Mutant == member.MutantSealUnanswered:
		return 0
	case n.early.since == 0:
		n.early.since = max(now, 1)
	case now-n.early.since >= earlyTimeouts*election:
		n.early.since = now
		return n.ids[0]
	}
	return 0
}

// deliver hands an instance that has begun what was kept for it.
func (n *Instances[I]) deliver(id protocol.InstanceID, i I) {
	for _, f := range n.early.remove(id) {
		n.host.Deliver(i, f)
	}
}
