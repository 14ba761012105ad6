package iss

import (
	"github.com/braidlog/braid/internal/protocol/iss/epochs"
	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// Info describes ISS: many leaders, each of which proposes in slots of its own.
var Info = protocol.Info{
	Name:     "iss",
	Codec:    Codec,
	Cells:    &protocol.CellUse{Entry: paxos.Accepted},
	Judged:   protocol.Judged{DecidedOnly: true, ManyLead: true},
	Settings: Settings,
	Derive:   derive, Section: epochs.SectionName,
	Wrote: Wrote, Behind: paxos.Behind,
	Mutants: Mutants[:],
	New:     start,
}

// start is New with the epochs of the settings.
func start(s protocol.Settings, rec protocol.Recovered) (protocol.Core, error) {
	if err := s.Complete(Settings); err != nil {
		return nil, err
	}
	set, err := epochs.Chosen(epochs.Setting.In(s.Own))
	if err != nil {
		return nil, err
	}
	return New(s, set, rec)
}

func derive(own setting.Values, first protocol.Config) protocol.Derived {
	set, err := epochs.Chosen(epochs.Setting.In(own))
	if err != nil {
		panic(err) // Complete has seen them
	}
	return epochs.New(set, first)
}
