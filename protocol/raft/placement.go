package raft

import "github.com/braidlog/braid/protocol"

// placement is where payloads live: in what form each peer gets an entry, and when an
// index is stored safely enough to be committed. Elections, log matching, membership and
// reads do not depend on it.
//
// The interface is cut so that these fit behind it: copies (copy.go); Reed–Solomon
// fragments, where a form per peer and index is noted in acked and stored applies the
// predicate of SPECS §2.1 to every index in turn; and confirmation, where frame replaces
// payloads by references.
type placement interface {
	// frame returns the entries from p.next on in the form for p, at most what the
	// limits of one frame allow. It must not change entries of the log.
	frame(p *progress) []protocol.Entry
	// acked notes what a successful answer says about p's disk; p.match is up to date.
	acked(p *progress, m *protocol.Message)
	// stored returns the highest index such that everything from the commit index to it
	// is stored safely, whatever becomes of a minority.
	stored() protocol.Index
	// prepare is called when an election is won and after every later input until it
	// returns true: this member may then lead. Until then it is leader in name, sends
	// heartbeats and neither proposes nor commits (SPECS §2.5, LeaderPre).
	prepare() bool
	// reset forgets everything when leadership ends.
	reset()
}
