package wpaxos

import (
	"github.com/braidlog/braid/internal/protocol/multipaxos"
	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/protocol"
)

// Info describes one group of keys of WPaxos: multi-Paxos whose leader hands the group over to the member that asks for
// it.
var Info = protocol.Info{
	Name:     "wpaxos",
	Codec:    multipaxos.Codec,
	Cells:    &protocol.CellUse{Entry: paxos.Accepted},
	Judged:   protocol.Judged{DecidedOnly: true, Fixed: true},
	Settings: Settings,
	Wrote:    multipaxos.Wrote,
	Mutants:  Mutants[:],
	New:      func(s protocol.Settings, rec protocol.Recovered) (protocol.Core, error) { return New(s, rec) },
}
