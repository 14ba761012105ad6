package iss

import (
	"fmt"

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
	Settings: Settings, Merges: merges,
	Derive: derive, Section: epochs.SectionName,
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
	if s.Merged {
		if err := merges(s.Own); err != nil {
			return nil, &protocol.SettingsError{Detail: err.Error()}
		}
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

// MergedSlots is the least number of slots of a leader with a full share if the instance's log is merged with others.
// The smallest share has two slots then: the last one cannot have what the order leaves out.
const MergedSlots = 8

// merges returns why instances with these settings cannot be merged.
func merges(own setting.Values) error {
	if e := epochs.Setting.In(own); e.MinSlots < MergedSlots {
		return &setting.Error{Name: epochs.Setting.Name, Text: e.String(),
			Detail: fmt.Sprintf("with several instances a leader needs at least %d slots", MergedSlots)}
	}
	return nil
}
