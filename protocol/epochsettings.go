package protocol

import (
	"errors"
	"fmt"
	"strings"
)

// EpochSettings determine the length of epochs and their leaders (docs/internals/iss.md). The zero value of a field
// means its default. They are the same on all members of a cluster, and change only with a seal: with other settings
// the same log would have other epochs.
type EpochSettings struct {
	// MinSlots and MaxSlots bound the slots of a leader with a full share in an epoch. Both are powers of two. If they
	// are equal, the length of epochs does not follow the load.
	MinSlots int `json:"min_slots,omitempty"`
	MaxSlots int `json:"max_slots,omitempty"`
	// EqualShares gives every leader a full share, whatever its load. With equal bounds all segments have the same
	// length.
	EqualShares bool `json:"equal_shares,omitempty"`
	// Policy selects the leaders: "simple", "backoff", "blacklist" or "combined".
	Policy string `json:"policy,omitempty"`
	// Ban is the number of epochs of the first ban, and MaxBan that of the longest.
	Ban    int `json:"ban,omitempty"`
	MaxBan int `json:"max_ban,omitempty"`
}

// errEpochForm says how String writes settings.
var errEpochForm = errors.New(
	`not of the form "slots LEAST-MOST, shares by load|equal, policy NAME, bans FIRST-LONGEST"`)

// ParseEpochSettings reads what String writes.
func ParseEpochSettings(text string) (s EpochSettings, err error) {
	words := strings.Split(text, ", ")
	if len(words) != 4 {
		return s, errEpochForm
	}
	_, errSlots := fmt.Sscanf(words[0], "slots %d-%d", &s.MinSlots, &s.MaxSlots)
	_, errBans := fmt.Sscanf(words[3], "bans %d-%d", &s.Ban, &s.MaxBan)
	shares, isShares := strings.CutPrefix(words[1], "shares ")
	policy, isPolicy := strings.CutPrefix(words[2], "policy ")
	if s.EqualShares, s.Policy = shares == "equal", policy; !isShares || !isPolicy || errSlots != nil || errBans != nil {
		return s, errEpochForm
	}
	return s, nil
}

// String has all set fields, so that members can compare it.
func (s EpochSettings) String() string {
	shares := "by load"
	if s.EqualShares {
		shares = "equal"
	}
	return fmt.Sprintf("slots %d-%d, shares %s, policy %s, bans %d-%d", s.MinSlots, s.MaxSlots, shares, s.Policy,
		s.Ban, s.MaxBan)
}
