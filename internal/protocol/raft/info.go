package raft

import (
	"github.com/braidlog/braid/internal/protocol/raft/lane"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
)

// Info describes Raft with its placements.
var Info = protocol.Info{
	Name:    "raft",
	Codec:   message.Codec,
	Wrote:   Wrote,
	Mutants: Mutants[:],
	New:     func(s protocol.Settings, rec protocol.Recovered) (protocol.Core, error) { return New(s, rec) },
}

// LaneInfo describes Raft with lanes. Members with and without lanes do not understand each other.
var LaneInfo = protocol.Info{
	Name:   "lcr",
	Codec:  message.Codec,
	Cells:  &protocol.CellUse{},
	Derive: protocol.Deriver(lane.Derive), Section: lane.Section,
	Wrote: WroteLanes, Begins: protocol.EntryGeneration, Behind: lane.Behind,
	Proposing: protocol.Proposing{Accepted: true, Path: lane.PathOf},
	Mutants:   lane.Mutants[:],
	New: func(s protocol.Settings, rec protocol.Recovered) (protocol.Core, error) {
		s.Lanes = true
		return New(s, rec)
	},
}
