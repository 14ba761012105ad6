package member

import "github.com/braidlog/braid/protocol"

// SlowestLink is the slowest link for which there is enough time, in bytes a second.
const SlowestLink = 4 << 20

// leaderBehind is how many entries a member may be behind that is to lead. Handing over waits for them, and meanwhile
// nothing is proposed.
const leaderBehind = 1024

// KeepsUp reports whether a member answers and has nearly all of an instance, up to an index.
func KeepsUp(p *protocol.PeerStatus, to protocol.Index) bool {
	return p.Active && !p.Snapshot && p.Match+leaderBehind >= to
}

// EnvelopeBytes is what an envelope takes in memory at most, with its place in queues.
const EnvelopeBytes = 256
