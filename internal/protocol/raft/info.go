package raft

import (
	"slices"

	"github.com/braidlog/braid/internal/protocol/raft/lane"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// own are the settings that only Raft has.
var own = setting.Table{Rows: []setting.Any{lane.On}}

// Info describes Raft with its placements, with lanes and without. The messages and the log's entries are the same, so
// members may have lanes from some place in the log on.
var Info = protocol.Info{
	Name: "raft",
	Former: []protocol.Former{{
		Name: "lcr", Settings: lane.On.Set(setting.Values{}, true),
		Section: lane.Section, Wrote: WroteLanes, Begins: protocol.EntryGeneration,
	}},
	Settings:  own,
	Codec:     message.Codec,
	Cells:     &protocol.CellUse{If: lane.On.In},
	Derive:    protocol.Deriver(lane.Derive),
	Wrote:     Wrote,
	Behind:    lane.Behind,
	Proposing: protocol.Proposing{If: lane.On.In, Accepted: true, Path: lane.PathOf},
	Mutants:   slices.Concat(Mutants[:], lane.Mutants[:]),
	New:       func(s protocol.Settings, rec protocol.Recovered) (protocol.Core, error) { return New(s, rec) },
}
