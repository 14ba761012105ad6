package order

import "github.com/braidlog/braid/protocol"

// Ahead is the number of rounds that an idle instance skips in advance. While another instance fills these rounds, it
// does not wait for skips, and one skip serves many batches. Skipping ahead costs nothing: a skip of many rounds is
// one entry, and rounds are no positions. If the idle instance then gets a batch, the batch fills a round far ahead,
// and the others skip up to it at once.
const Ahead = 1024

// Skip decides whether the leader of an instance, whose log fills its rounds up to tail, should
// propose to skip, and up to which round. want is the furthest slot that any other instance wants
// (Tail.Want); idle says that no batch of this instance is in progress.
//
// A skip is absolute (docs/internals/niagara.md, 3.1, which corrects the paper's rule): a late or repeated skip fills
// nothing.
func Skip(self protocol.InstanceID, tail protocol.Round, want Slot, idle bool) (to protocol.Round, ok bool) {
	need := want.Round
	if self > want.Instance && need > 0 {
		need-- // its slot of that round comes after the wanted one
	}
	switch {
	case want.Round == 0:
		return 0, false
	case idle && tail < want.Round+Ahead/2:
		return want.Round + Ahead, true
	case tail < need:
		return need, true
	}
	return 0, false
}
