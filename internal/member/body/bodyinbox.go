package body

import (
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// BodyInbox is what waits for Bodies. It is a pure rule. It is not safe for concurrent use:
// package replica puts a lock around it.
type BodyInbox struct {
	limits BodyLimits
	mail   BodyMail
	bytes  int // of mail.answers; ≤ limits.Bytes plus one head, but one answer alone may have any size
	closed error
}

// The limits of a member in production.
const (
	// InboxBytes is BodyLimits.Bytes, InboxAsks is BodyLimits.Asks.
	InboxBytes = 128 << 20
	InboxAsks  = 1 << 16
	// Questions is the maximal number of questions of other members that wait.
	Questions = 1024
	// Filling and HolderCounts are those of BodyConfig. HolderCounts is BodyLimits.Trims, too.
	Filling      = 8
	HolderCounts = 64
)

// BodyLimits bound what waits for Bodies.
type BodyLimits struct {
	// Bytes bounds the fragments that arrived and wait. What does not fit is dropped, and asked
	// for again.
	Bytes int
	// Asks is how many questions of this member's own may wait. Trims is how many whole copies may
	// wait until it is asked whether a row is enough.
	Asks, Trims int
}

// downs bounds the broken links of which Bodies are told.
const downs = 1024

// BodyMail is what Bodies take in at once.
type BodyMail struct {
	asks    []bodyAsk
	wants   []protocol.BodyRef // of cores
	answers []*protocol.Message
	down    []protocol.MemberID
	trims   []protocol.BodyRef
	config  *protocol.Config // new since the last look
}

// bodyAsk asks for a body; done must not block.
type bodyAsk struct {
	question GatherRequest
	done     func(Answer)
}

// NewBodyInbox returns an empty inbox.
func NewBodyInbox(limits BodyLimits) *BodyInbox { return &BodyInbox{limits: limits} }

// Ask puts in a question. done is not called if an error is returned.
func (i *BodyInbox) Ask(q GatherRequest, done func(Answer)) error {
	switch {
	case i.closed != nil:
		return i.closed
	case len(i.mail.asks) >= i.limits.Asks:
		return member.ErrOverloaded
	}
	i.mail.asks = append(i.mail.asks, bodyAsk{q, done})
	return nil
}

// Want puts in what a core wants. If something does not fit, the core asks for it again.
func (i *BodyInbox) Want(refs []protocol.BodyRef) {
	for _, ref := range refs {
		if i.closed == nil && len(i.mail.wants) < i.limits.Asks && !slices.Contains(i.mail.wants, ref) {
			i.mail.wants = append(i.mail.wants, ref)
		}
	}
}

// Answer puts in what another member sent. It is false if that does not fit, or if no one takes it.
func (i *BodyInbox) Answer(m *protocol.Message) bool {
	if i.closed != nil || i.bytes > 0 && i.bytes+len(m.Blob) > i.limits.Bytes {
		return false
	}
	i.mail.answers = append(i.mail.answers, m)
	i.bytes += len(m.Blob) + protocol.MessageHeadSize
	return true
}

// Down says that a link broke.
func (i *BodyInbox) Down(id protocol.MemberID) {
	if len(i.mail.down) < downs {
		i.mail.down = append(i.mail.down, id)
	}
}

// Trim puts in a whole copy for which it is to be asked whether a row is enough.
func (i *BodyInbox) Trim(ref protocol.BodyRef) {
	if len(i.mail.trims) < i.limits.Trims {
		i.mail.trims = append(i.mail.trims, ref)
	}
}

// Follow says which members there are now.
func (i *BodyInbox) Follow(c *protocol.Config) {
	config := c.Clone()
	i.mail.config = &config
}

// Take takes out everything.
func (i *BodyInbox) Take() BodyMail {
	mail := i.mail
	i.mail, i.bytes = BodyMail{}, 0
	return mail
}

// Close refuses further questions with an error, and takes out everything.
func (i *BodyInbox) Close(err error) BodyMail {
	i.closed = err
	return i.Take()
}
