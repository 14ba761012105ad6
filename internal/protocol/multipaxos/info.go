package multipaxos

import (
	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/protocol"
)

// Info describes multi-Paxos: Paxos with one phase 1 for all slots to come.
var Info = protocol.Info{
	Name:     "multi-paxos",
	Codec:    Codec,
	Cells:    &protocol.CellUse{Entry: paxos.Accepted},
	Judged:   protocol.Judged{DecidedOnly: true},
	Settings: Settings,
	Wrote:    Wrote, Behind: paxos.Behind,
	Mutants: Mutants[:],
	New:     func(s protocol.Settings, rec protocol.Recovered) (protocol.Core, error) { return New(s, rec) },
}
