package replica

import (
	"sync/atomic"

	"github.com/braidlog/braid/internal/member/intake"
)

// inbox counts the bytes of messages that wait for all event loops of a member. See intake.InboxLimit.
type inbox struct{ bytes atomic.Int64 }

// reserve counts a message for an event loop that has own bytes waiting; instances is how many loops
// there are. If the limit does not allow the message, take counts nothing and returns false.
func (b *inbox) reserve(own, bytes, instances int) bool {
	all := b.bytes.Add(int64(bytes))
	if limit := intake.NewInboxLimit(intake.InboxBytes); limit.Takes(int(all), own, bytes, instances) {
		return true
	}
	b.bytes.Add(-int64(bytes))
	return false
}

// release takes off the bytes of messages that a loop has taken or dropped.
func (b *inbox) release(bytes int) { b.bytes.Add(-int64(bytes)) }
