package epochs

import (
	"cmp"
	"fmt"

	"github.com/braidlog/braid/protocol"
)

// Settings are the same on all members of a cluster, for ever.
type Settings struct {
	// MinSlots and MaxSlots bound how many slots a leader with a full share has in an epoch: powers of two
	// from fullShare to 1<<16. With equal bounds only the shares adapt to the load.
	MinSlots, MaxSlots int
	// EqualShares: not even these. Everybody who leads has a full share.
	EqualShares bool
	Policy      Policy
	// Ban is how many epochs the first ban has, and MaxBan the longest; 1 ≤ Ban ≤ MaxBan ≤ 1<<16.
	Ban, MaxBan int
}

// Default are the settings of a cluster that has no others.
//
// Between two epochs nothing is proposed for about one round trip. So a leader that is busy gets 1024 slots, and
// still 256 while its share is the smallest. An idle leader comes down to 64 slots, and to 16 with the smallest
// share. If a leader crashes then, the epoch ends after few slots.
//
// Whoever leads and is dead holds up all others for an election timeout, about a second. Whoever is well and may
// not lead costs its clients a hop. So bans are long: a dead member leads again once in 256 epochs. These take
// a minute where an epoch is a quarter of a second, and then a second of 60 is lost. The first ban of 8 epochs
// is for members that restart one after the other: only the last of them is still on the blacklist.
func Default() Settings {
	return Settings{MinSlots: 64, MaxSlots: 1024, Policy: Combined, Ban: 8, MaxBan: 256}
}

// Validate returns what is wrong with the settings.
func (s Settings) Validate() error {
	power := func(n int) bool { return n >= fullShare && n <= 1<<16 && n&(n-1) == 0 }
	switch {
	case !power(s.MinSlots) || !power(s.MaxSlots) || s.MinSlots > s.MaxSlots:
		return fmt.Errorf("segments of %d to %d slots: both must be powers of two, from %d to %d", s.MinSlots, s.MaxSlots, fullShare, 1<<16)
	case s.Policy >= policies:
		return fmt.Errorf("policy %d is not known", uint8(s.Policy))
	case s.Ban < 1 || s.Ban > s.MaxBan || s.MaxBan > 1<<16:
		return fmt.Errorf("bans of %d to %d epochs: from 1 to %d are possible", s.Ban, s.MaxBan, 1<<16)
	}
	return nil
}

// Chosen are the settings that somebody chose, with defaults for what was left out. The error is a
// [*protocol.SettingsError].
func Chosen(c protocol.EpochSettings) (Settings, error) {
	d := Default()
	s := Settings{
		MinSlots: cmp.Or(c.MinSlots, d.MinSlots), MaxSlots: cmp.Or(c.MaxSlots, d.MaxSlots), EqualShares: c.EqualShares,
		Ban: cmp.Or(c.Ban, d.Ban), MaxBan: cmp.Or(c.MaxBan, d.MaxBan),
	}
	var err error
	if s.Policy, err = policyOf(cmp.Or(c.Policy, d.Policy.String())); err == nil {
		err = s.Validate()
	}
	if err != nil {
		return s, &protocol.SettingsError{Detail: "epochs: " + err.Error()}
	}
	return s, nil
}

// Choice is what would have to be chosen for these settings, without leaving anything out.
func (s Settings) Choice() protocol.EpochSettings {
	return protocol.EpochSettings{
		MinSlots: s.MinSlots, MaxSlots: s.MaxSlots, EqualShares: s.EqualShares, Policy: s.Policy.String(), Ban: s.Ban, MaxBan: s.MaxBan,
	}
}
