package intake

// InboxLimit bounds the messages that wait for all instances of a member, in bytes. A member has
// one bound, however many instances it hosts. What is beyond it is dropped, as a network would.
// But a message that comes when nothing waits is taken. Share, divided by the instances, is what
// each instance may have in any case, so that one that is busy does not silence the others.
type InboxLimit struct{ All, Share int }

// InboxBytes is the limit of a member in production.
const InboxBytes = 256 << 20

// NewInboxLimit returns the limit of a member for which all messages together may have a number of bytes.
func NewInboxLimit(all int) InboxLimit { return InboxLimit{All: all, Share: all / 8} }

// Takes reports whether a message of that size is taken, for one of that many instances, which has own bytes waiting.
// all is what would wait for all instances with it.
func (l InboxLimit) Takes(all, own, bytes, instances int) bool {
	return all <= l.All || all == bytes || own+bytes <= l.Share/max(1, instances)
}
