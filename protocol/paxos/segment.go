package paxos

import "github.com/braidlog/braid/protocol"

// segment is a set of slots that have ballots of their own: every so many of them, from the first one
// on. Multi-Paxos has one, of all slots.
type segment struct{ first, every protocol.Index }

// all is the segment of multi-Paxos.
var all = segment{first: 1, every: 1}

// after is the segment's first slot after i.
func (g segment) after(i protocol.Index) protocol.Index {
	if i < g.first {
		return g.first
	}
	return i + g.every - (i-g.first)%g.every
}
