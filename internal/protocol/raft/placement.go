package raft

import (
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
)

// placement decides with which k a new body is coded, in which form each peer gets it, and when an
// entry is stored safely enough to be committed. Elections, log matching, membership and reads do
// not depend on it. A new leader makes bodies whole under any placement (prepare.go).
//
// The interface is cut so that these fit behind it: copies (copy.go); Reed–Solomon
// fragments (code.go, rs.go); and confirmation, where frame replaces payloads by references.
type placement interface {
	// k is the k for a body that is appended now; 1: it is not coded.
	k() uint8
	// kOf is the k for a body that a member brings without leading, where counted are the other voters
	// of which it expects that they store it soon.
	kOf(counted func(protocol.MemberID) bool) uint8
	// frame returns the entries from p.next on in the form for p, as many as one frame may have.
	// It must not change entries of the log.
	frame(p *tracker.Progress) []protocol.Entry
	// fill sends p whole bodies of entries that p already has, where that is needed.
	fill(p *tracker.Progress)
	// stored returns the highest index such that everything from the commit index up to it
	// survives the loss of any minority.
	stored() protocol.Index
	// uncode stops coding for a while, so that a membership may change.
	uncode()
	// recode codes again: the change is in the log.
	recode()
	// tick is called at every tick of a leader that has prepared.
	tick()
	// reset forgets everything when leadership ends.
	reset()
}

func (r *Raft) newPlacement() placement {
	switch r.cfg.Placement {
	case protocol.PlacementCode:
		return &code{r: r, most: r.cfg.MaxK}
	case protocol.PlacementRS:
		return &rs{code{r: r, most: r.cfg.MaxK}}
	}
	return copies(r)
}
