package epochs

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// Settings are the same on all members of a cluster, and never change.
type Settings struct {
	// MinSlots and MaxSlots bound how many slots a leader with a full share has in an epoch: powers of two
	// from fullShare to 1<<16. With equal bounds only the shares adapt to the load.
	MinSlots, MaxSlots int
	// EqualShares: every leader has a full share.
	EqualShares bool
	Policy      Policy
	// Ban is the length of the first ban in epochs, and MaxBan that of the longest; 1 ≤ Ban ≤ MaxBan ≤ 1<<16.
	Ban, MaxBan int
}

// Default are the default settings.
//
// Between two epochs nothing is proposed for about one round trip. So a busy leader gets 1024 slots, and 256 with the
// smallest share. An idle leader gets 64 slots, and 16 with the smallest share. If a leader crashes then, the epoch
// ends after few slots.
//
// A dead leader delays all others for an election timeout, about a second. A live member that may not lead costs its
// clients a hop. So bans are long: a dead member leads again once in 256 epochs. These take a minute if an epoch
// takes a quarter of a second, so one second of 60 is lost. The first ban of 8 epochs is for members that restart one
// after the other: only the last of them is still on the blacklist.
func Default() Settings {
	return Settings{MinSlots: 64, MaxSlots: 1024, Policy: Combined, Ban: 8, MaxBan: 256}
}

// Validate returns the error in the settings; nil: they are valid.
func (s Settings) Validate() error {
	power := func(n int) bool { return n >= fullShare && n <= 1<<16 && n&(n-1) == 0 }
	switch {
	case !power(s.MinSlots) || !power(s.MaxSlots) || s.MinSlots > s.MaxSlots:
		return fmt.Errorf("segments of %d to %d slots: both must be powers of two, from %d to %d", s.MinSlots, s.MaxSlots,
			fullShare, 1<<16)
	case s.Policy >= policies:
		return fmt.Errorf("policy %d is not known", uint8(s.Policy))
	case s.Ban < 1 || s.Ban > s.MaxBan || s.MaxBan > 1<<16:
		return fmt.Errorf("bans of %d to %d epochs: from 1 to %d are possible", s.Ban, s.MaxBan, 1<<16)
	}
	return nil
}

// Chosen returns the chosen settings, with defaults for what was left out. The error is a [*protocol.SettingsError].
func Chosen(c protocol.EpochSettings) (Settings, error) {
	c = fill(c)
	s := Settings{MinSlots: c.MinSlots, MaxSlots: c.MaxSlots, EqualShares: c.EqualShares, Ban: c.Ban, MaxBan: c.MaxBan}
	var err error
	if s.Policy, err = policyOf(c.Policy); err == nil {
		err = s.Validate()
	}
	if err != nil {
		return s, &protocol.SettingsError{Detail: "epochs: " + err.Error()}
	}
	return s, nil
}

// Setting is the setting of the epochs. Its flags are parts of it.
var Setting = &setting.Setting[protocol.EpochSettings]{
	Name: "epochs", Default: Default().Choice(), Agree: true, Change: setting.Sealed,
	Text: &setting.Text[protocol.EpochSettings]{Name: "string", Parse: protocol.ParseEpochSettings,
		Format: protocol.EpochSettings.String},
	Fill: fill,
	Check: setting.Check[protocol.EpochSettings]{Refuse: func(c protocol.EpochSettings) error {
		_, err := Chosen(c)
		return err
	}},
	Help: "the length of epochs, and their leaders",
	Parts: []setting.Part[protocol.EpochSettings]{
		bounds("epoch-slots", "slots of a leader in an epoch, least and most, both powers of two, or one number for both",
			"64-1024",
			func(c *protocol.EpochSettings) (least, most *int) { return &c.MinSlots, &c.MaxSlots }),
		{
			Name: "epoch-equal-shares", Text: "bool", Default: "false",
			Help: "leaders have the same number of slots, whatever their load",
			Get:  func(c protocol.EpochSettings) string { return strconv.FormatBool(c.EqualShares) },
			Set: func(c *protocol.EpochSettings, text string) (err error) {
				c.EqualShares, err = strconv.ParseBool(text)
				return err
			},
		},
		{
			Name: "epoch-policy", Text: "string", Default: Combined.String(),
			Help: "selection of leaders: simple, all members; backoff or blacklist, no suspected member; or combined",
			Get:  func(c protocol.EpochSettings) string { return c.Policy },
			Set: func(c *protocol.EpochSettings, text string) error {
				c.Policy = cmp.Or(text, Combined.String())
				return nil
			},
		},
		bounds("epoch-bans", "number of epochs in which a suspected member does not lead, the first time and at most",
			"8-256",
			func(c *protocol.EpochSettings) (least, most *int) { return &c.Ban, &c.MaxBan }),
	},
}

// fill sets defaults in place of zeros.
func fill(c protocol.EpochSettings) protocol.EpochSettings {
	d := Default()
	return protocol.EpochSettings{
		MinSlots: cmp.Or(c.MinSlots, d.MinSlots), MaxSlots: cmp.Or(c.MaxSlots, d.MaxSlots), EqualShares: c.EqualShares,
		Policy: cmp.Or(c.Policy, d.Policy.String()), Ban: cmp.Or(c.Ban, d.Ban), MaxBan: cmp.Or(c.MaxBan, d.MaxBan),
	}
}

// bounds is a flag with two numbers, such as 64-1024. One number sets both; an empty value means the defaults.
func bounds(name, help, usual string,
	of func(*protocol.EpochSettings) (least, most *int)) setting.Part[protocol.EpochSettings] {
	return setting.Part[protocol.EpochSettings]{
		Name: name, Text: "numbers", Default: usual, Help: help,
		Get: func(c protocol.EpochSettings) string {
			least, most := of(&c)
			if *least == *most {
				return strconv.Itoa(*least)
			}
			return fmt.Sprintf("%d-%d", *least, *most)
		},
		Set: func(c *protocol.EpochSettings, text string) error {
			low, high, two := strings.Cut(cmp.Or(text, usual), "-")
			if !two {
				high = low
			}
			least, most := of(c)
			a, errA := strconv.Atoi(low)
			b, errB := strconv.Atoi(high)
			if errA != nil || errB != nil || a <= 0 || b <= 0 {
				return fmt.Errorf("%q is not a positive number, or two with a - between", text)
			}
			*least, *most = a, b
			return nil
		},
	}
}

// Choice returns the complete choice that yields these settings.
func (s Settings) Choice() protocol.EpochSettings {
	return protocol.EpochSettings{
		MinSlots: s.MinSlots, MaxSlots: s.MaxSlots, EqualShares: s.EqualShares, Policy: s.Policy.String(), Ban: s.Ban,
		MaxBan: s.MaxBan,
	}
}
