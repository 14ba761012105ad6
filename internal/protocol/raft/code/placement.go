package code

import (
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
)

// Placement decides with which k a new body is coded, in which form each peer gets it, and when an
// entry is stored safely enough to be committed. Elections, log matching, membership and reads do
// not depend on it. A new leader makes bodies whole under any placement.
//
// The interface is cut so that these fit behind it: copies and Reed–Solomon
// fragments (code.go, rs.go); and confirmation, where Frame replaces payloads by references.
type Placement interface {
	// K is the k for a body that is appended now; 1: it is not coded.
	K(v *View) uint8
	// KOf is the k for a body that a member brings without leading, where counted are the other voters
	// that it expects to store it soon.
	KOf(v *View, counted func(protocol.MemberID) bool) uint8
	// Frame returns the entries from p.Next on in the form for p, as many as one frame may have.
	// It must not change entries of the log.
	Frame(v *View, p *tracker.Progress) []protocol.Entry
	// Fill returns entries that p already has and whose bodies it is sent whole now; none where that is
	// not needed.
	Fill(v *View, p *tracker.Progress) []protocol.Entry
	// Stored returns the highest index such that everything from the commit index up to it
	// survives the loss of any minority.
	Stored(v *View) protocol.Index
	// Uncode stops coding for a while, so that a membership may change.
	Uncode(v *View)
	// Recode codes again: the change is in the log.
	Recode()
	// Tick is called at every tick of a leader that has prepared. It returns a configuration that is to be
	// appended now, nil if none is.
	Tick(v *View) *protocol.Config
	// Reset forgets everything when leadership ends.
	Reset()
}

// New makes the placement of the settings. It follows when these change between copies and fragments.
func New(s *protocol.Settings) Placement {
	if s.Placement == protocol.PlacementRS {
		return &rs{}
	}
	return &code{}
}
