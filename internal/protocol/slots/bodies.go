package slots

import (
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// Bodies is the member's view of the bodies of decided entries.
type Bodies struct {
	Any     bool // there are some
	Missing bool // the disk is missing some of them
}

// BodiesAfter is what is known of those that a snapshot refers to, until the owner has looked.
func BodiesAfter(base protocol.Index) Bodies { return Bodies{Any: base > 0, Missing: base > 0} }

// BodiesOf is the owner's report.
func BodiesOf(in protocol.Bodies) Bodies { return Bodies{Any: in.MaxK > 0, Missing: in.Missing > 0} }

// Learned: an entry was decided.
func (b *Bodies) Learned(e *protocol.Entry) {
	b.Any = b.Any || e.BodySize > 0
	b.Missing = b.Missing || e.BodySize > 0 && e.Form != protocol.FormWhole
}

// Kept reports whether all that may elect under the next configuration have all bodies among them. Those that leave
// may have been the only ones that had some. holds says of a member whether it certainly has all.
func (b *Bodies) Kept(elect quorum.Set, holds func(protocol.MemberID) bool) protocol.Reason {
	if b.Any && !elect.Covered(holds) {
		return protocol.ReasonBodies
	}
	return protocol.ReasonNone
}
