package page

import (
	"time"

	"github.com/braidlog/braid"
)

// Fit says which change would fit the load better; see braid.FitStatus.
type Fit struct {
	Mode string `json:"mode"`
	// At is when the leader decided last; absent: it has not, as far as this member knows.
	At        *time.Time `json:"at,omitempty"`
	Wish      *Wish      `json:"wish,omitempty"`
	Waits     string     `json:"waits,omitempty"`
	Changes   uint64     `json:"changes"` // that this member made
	TakenBack uint64     `json:"taken_back"`
}

// Wish is a change of the profile, or of the member that leads.
type Wish struct {
	Protocol  string            `json:"protocol"`
	Settings  map[string]string `json:"settings,omitempty"`
	Leader    string            `json:"leader,omitempty"`
	Gain      float64           `json:"gain"` // expected, as a factor of today's throughput
	Reason    string            `json:"reason"`
	TakesBack bool              `json:"takes_back,omitempty"`
	Restores  bool              `json:"restores,omitempty"`
}

func viewFit(f *braid.FitStatus) Fit {
	v := Fit{Mode: string(f.Mode), Waits: f.Waits, Changes: f.Changes, TakenBack: f.TakenBack}
	if !f.At.IsZero() {
		at := f.At.UTC().Truncate(time.Millisecond)
		v.At = &at
	}
	if w := f.Wish; w != nil {
		v.Wish = &Wish{Protocol: w.Protocol, Settings: w.Settings, Leader: name(w.Leader), Gain: w.Gain,
			Reason: w.Reason, TakesBack: w.TakesBack, Restores: w.Restores}
	}
	return v
}
