package lifecycle

import (
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// Members come to the place of the global log where an instance begins one after the other. Who is
// there first talks to members that do not have the instance yet. They keep what it says until they
// begin it too. Otherwise the instance would begin with a repetition.

// earlyBytes bounds the messages that are kept, of all instances that have not begun.
const earlyBytes = 4 << 20

// earlyMessages are messages for instances that are not active yet. The bytes of messages, and of what each takes in
// memory besides them, are at most earlyBytes.
type earlyMessages struct {
	bytes int
	kept  []earlyMessage
}

type earlyMessage struct {
	*protocol.Message
	bytes int // of its frame
}

func (m *earlyMessage) cost() int { return m.bytes + member.EnvelopeBytes }

// keep takes a message if there is room. What came first is needed first, so nothing makes room for
// it.
func (e *earlyMessages) keep(m earlyMessage) bool {
	if e.bytes+m.cost() > earlyBytes {
		return false
	}
	e.bytes += m.cost()
	e.kept = append(e.kept, m)
	return true
}

func (e *earlyMessages) sum() (bytes int) {
	for i := range e.kept {
		bytes += e.kept[i].cost()
	}
	return bytes
}

// remove removes and returns the messages of an instance, in the order in which they came.
func (e *earlyMessages) remove(id protocol.InstanceID) (taken []earlyMessage) {
	e.kept = slices.DeleteFunc(e.kept, func(m earlyMessage) bool {
		if m.Instance == id {
			e.bytes -= m.cost()
			taken = append(taken, m)
		}
		return m.Instance == id
	})
	return taken
}

// forget drops the messages of instances that will not begin here: a snapshot stands for all that
// they did.
func (e *earlyMessages) forget(c *order.Cursor) {
	e.kept = slices.DeleteFunc(e.kept, func(m earlyMessage) bool {
		if c.Retired(m.Instance) {
			e.bytes -= m.cost()
		}
		return c.Retired(m.Instance)
	})
}

// Receive takes a message for an instance that was not found to be hosted, with its size in bytes. It is kept if the
// instance may begin later, as long as there is room. If the instance is hosted after all, it is returned. Otherwise
// the message is dropped: the instance is retired, or what the message says has to be said again.
func (n *Instances[I]) Receive(m *protocol.Message, bytes int) (i I, hosted bool) {
	if at := slices.Index(n.ids, m.Instance); at >= 0 {
		return n.inForce[at], true
	}
	if at := slices.Index(n.behind, m.Instance); at >= 0 {
		return n.staying[at], true
	}
	if !n.cursor.Expects(m.Instance) || !n.early.keep(earlyMessage{m, bytes}) {
		n.Dropped++
	}
	return i, false
}

// deliver hands an instance that has begun what was kept for it.
func (n *Instances[I]) deliver(id protocol.InstanceID, i I) {
	for _, m := range n.early.remove(id) {
		n.host.Deliver(i, m.Message, m.bytes)
	}
}
