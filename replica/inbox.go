package replica

import "sync/atomic"

// inbox counts the messages that wait for the loops of a member, in bytes. One member has one
// bound, however many instances it hosts.
type inbox struct{ bytes atomic.Int64 }

// inboxBytes bounds the messages that wait for all loops of a member; what is more is dropped,
// as a network would, but for one that comes when nothing waits. inboxShare, divided by the instances, is what each may have beside that,
// so that one that is busy does not silence the others.
const (
	inboxBytes = 256 << 20
	inboxShare = 32 << 20
)

// take counts a message for a loop that has own bytes waiting, one of so many instances. It is
// false, and nothing is counted, if there is no room for it.
func (b *inbox) take(own, bytes, instances int) bool {
	all := b.bytes.Add(int64(bytes))
	if all <= inboxBytes || all == int64(bytes) || own+bytes <= inboxShare/max(1, instances) {
		return true
	}
	b.bytes.Add(-int64(bytes))
	return false
}

// give says that a loop has taken in its messages, or dropped them.
func (b *inbox) give(bytes int) { b.bytes.Add(-int64(bytes)) }
