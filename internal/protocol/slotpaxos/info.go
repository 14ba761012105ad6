package slotpaxos

import "github.com/braidlog/braid/protocol"

// Info describes slotpaxos: Paxos for each slot.
var Info = protocol.Info{
	Name:   "slotpaxos",
	Codec:  Codec,
	Cells:  &protocol.CellUse{Entry: Accepted},
	Derive: protocol.Deriver(Derive), Section: ChainSection,
	Judged:    protocol.Judged{DecidedOnly: true},
	Wrote:     Wrote,
	Proposing: protocol.Proposing{Accepted: true},
	Mutants:   Mutants[:],
	New:       func(s protocol.Settings, rec protocol.Recovered) (protocol.Core, error) { return New(s, rec) },
}
