package slots

import (
	"math"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// Bodies is a member's view of the bodies of decided entries.
type Bodies struct {
	Any     bool // there are some
	Missing bool // the disk is missing some of them
	// K is how many members' rows make the body that needs most of them. The bodies are of instances that a seal has
	// ended: no slot of this one is coded.
	K int
}

// BodiesAfter returns the view after a snapshot, until the owner has checked its bodies.
func BodiesAfter(base protocol.Index) Bodies {
	b := Bodies{Any: base > 0, Missing: base > 0}
	if b.Any {
		b.K = math.MaxUint8
	}
	return b
}

// BodiesOf returns the owner's report.
func BodiesOf(in protocol.Bodies) Bodies {
	return Bodies{Any: in.MaxK > 0, Missing: in.Missing > 0, K: int(in.MaxK)}
}

// Learned records that an entry was decided.
func (b *Bodies) Learned(e *protocol.Entry) {
	b.Any = b.Any || e.BodySize > 0
	b.Missing = b.Missing || e.BodySize > 0 && e.Form != protocol.FormWhole
}

// Kept reports whether the members of every quorum that may elect under the next configuration have all bodies
// between them. Those that leave may have been the only ones with some of them. holds reports whether a member
// certainly has all, or its row of each that is coded.
func (b *Bodies) Kept(elect quorum.Set, holds func(protocol.MemberID) bool) protocol.Reason {
	if b.Any && elect.Fewest(holds) < max(b.K, 1) {
		return protocol.ReasonBodies
	}
	return protocol.ReasonNone
}
