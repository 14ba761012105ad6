package epaxos

import "github.com/braidlog/braid/protocol"

// Info describes EPaxos.
var Info = protocol.Info{
	Name:   "epaxos",
	Codec:  Codec,
	Cells:  &protocol.CellUse{},
	Derive: protocol.Deriver(Derive), Section: SectionName,
	Judged:    protocol.Judged{DecidedOnly: true, ByKey: true, Fixed: true},
	Wrote:     Wrote,
	Proposing: protocol.Proposing{Keys: true},
	Mutants:   Mutants[:],
	New:       func(s protocol.Settings, rec protocol.Recovered) (protocol.Core, error) { return New(s, rec) },
}
