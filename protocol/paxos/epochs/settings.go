package epochs

import "fmt"

// Settings are the same on all members of a cluster, for ever.
type Settings struct {
	// MinSlots and MaxSlots bound how many slots a leader with a full share has in an epoch: powers of two
	// from fullShare to 1<<16. With equal bounds only the shares adapt to the load.
	MinSlots, MaxSlots int
	Policy             Policy
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
