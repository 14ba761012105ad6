package slots

import (
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// Bodies is a member's view of the bodies of decided entries.
type Bodies struct {
	Any     bool // there are some
	Missing bool // the disk is missing some of them
}

// BodiesAfter returns the view after a snapshot, until the owner has checked its bodies.
func BodiesAfter(base protocol.Index) Bodies { return Bodies{Any: base > 0, Missing: base > 0} }

// BodiesOf returns the owner's report.
func BodiesOf(in protocol.Bodies) Bodies { return Bodies{Any: in.MaxK > 0, Missing: in.Missing > 0} }

// Learned records that an entry was decided.
func (b *Bodies) Learned(e *protocol.Entry) {
	b.Any = b.Any || e.BodySize > 0
	b.Missing = b.Missing || e.BodySize > 0 && e.Form != protocol.FormWhole
}

// Kept reports whether the members of every quorum that may elect under the next configuration have all bodies
// between them. Those that leave may have been the only ones with some of them. holds reports whether a member
// certainly has all.
func (b *Bodies) Kept(elect quorum.Set, holds func(protocol.MemberID) bool) protocol.Reason {
	if b.Any && !elect.Covered(holds) {
		return protocol.ReasonBodies
	}
	return protocol.ReasonNone
}
