package replica

import (
	"sync/atomic"

	"github.com/braidlog/braid/member"
)

// inbox counts the messages that wait for the loops of a member, in bytes. See member.InboxLimit.
type inbox struct{ bytes atomic.Int64 }

// take counts a message for a loop that has own bytes waiting, one of so many instances. It is
// false, and nothing is counted, if there is no room for it.
func (b *inbox) take(own, bytes, instances int) bool {
	all := b.bytes.Add(int64(bytes))
	if limit := member.NewInboxLimit(); limit.Takes(int(all), own, bytes, instances) {
		return true
	}
	b.bytes.Add(-int64(bytes))
	return false
}

// give says that a loop has taken in its messages, or dropped them.
func (b *inbox) give(bytes int) { b.bytes.Add(-int64(bytes)) }
