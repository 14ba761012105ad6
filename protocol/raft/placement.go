package raft

import "github.com/braidlog/braid/protocol"

// placement is where bodies live: with what k a new one is coded, in what form each peer
// gets it, and when an index is stored safely enough to be committed. Elections, log
// matching, membership and reads do not depend on it; nor does making bodies whole, which a
// new leader does under any placement (prepare.go).
//
// The interface is cut so that these fit behind it: copies (copy.go); Reed–Solomon
// fragments (code.go, rs.go); and confirmation, where frame replaces payloads by references.
type placement interface {
	// k is what a body that is appended now is coded with; 1: it is not.
	k() uint8
	// frame returns the entries from p.next on in the form for p, at most what the
	// limits of one frame allow. It must not change entries of the log.
	frame(p *progress) []protocol.Entry
	// fill sends p more of the bodies of entries that it has, where that is needed.
	fill(p *progress)
	// stored returns the highest index such that everything from the commit index to it
	// is stored safely, whatever becomes of a minority.
	stored() protocol.Index
	// uncode asks for nothing to be coded for a while, so that a membership may change.
	uncode()
	// recode takes that back: the change that it was for is in the log.
	recode()
	// tick is called at every tick of a leader that may lead.
	tick()
	// reset forgets everything when leadership ends.
	reset()
}

func (r *Raft) newPlacement() placement {
	switch r.cfg.Placement {
	case PlacementCode:
		return &code{r: r, most: r.cfg.MaxK}
	case PlacementRS:
		return &rs{code{r: r, most: r.cfg.MaxK}}
	}
	return copies(r)
}
