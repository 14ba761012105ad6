package member

// InboxLimit bounds the messages that wait for all instances of a member, in bytes. One member has
// one bound, however many instances it hosts. What is more is dropped, as a network would, but for
// one that comes when nothing waits. Share, divided by the instances, is what each may have beside
// that, so that one that is busy does not silence the others.
type InboxLimit struct{ All, Share int }

// NewInboxLimit is the limit of a member.
func NewInboxLimit() InboxLimit { return InboxLimit{All: 256 << 20, Share: 32 << 20} }

// Takes reports whether there is room for a message of so many bytes, for an instance that has own
// bytes waiting, one of so many. all is what would wait then for all of them.
func (l InboxLimit) Takes(all, own, bytes, instances int) bool {
	return all <= l.All || all == bytes || own+bytes <= l.Share/max(1, instances)
}
