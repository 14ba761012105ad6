package iss

import (
	"github.com/braidlog/braid/internal/protocol/iss/epochs"
	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
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

// start is New with the epochs of the settings, or of the profile that the disk has.
func start(s protocol.Settings, rec protocol.Recovered) (protocol.Core, error) {
	s, err := s.WithDefaults()
	if err == nil {
		err = s.Complete(Settings)
	}
	if err != nil {
		return nil, err
	}
	profile := slots.LastProfile(&rec)
	if s, err = common.Tuned(s, Settings, &profile); err != nil {
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
