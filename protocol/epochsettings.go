package protocol

import "fmt"

// EpochSettings say how a protocol with epochs cuts its log and who leads (docs/internals/iss.md). The zero value of a field
// means its default. They are the same on all members of a cluster, for ever: from the same log other settings make
// other epochs.
type EpochSettings struct {
	// MinSlots and MaxSlots bound how many slots a leader with a full share has in an epoch. Both are powers of two.
	// If they are equal, epochs do not become longer or shorter with the load.
	MinSlots int `json:"min_slots,omitempty"`
	MaxSlots int `json:"max_slots,omitempty"`
	// EqualShares gives every leader a full share, whatever its load is. With equal bounds all segments have the same
	// length.
	EqualShares bool `json:"equal_shares,omitempty"`
	// Policy says who leads: "simple", "backoff", "blacklist" or "combined".
	Policy string `json:"policy,omitempty"`
	// Ban is how many epochs the first ban has, and MaxBan the longest.
	Ban    int `json:"ban,omitempty"`
	MaxBan int `json:"max_ban,omitempty"`
}

// String has all that is set, so that members can compare it.
func (s EpochSettings) String() string {
	shares := "by load"
	if s.EqualShares {
		shares = "equal"
	}
	return fmt.Sprintf("slots %d-%d, shares %s, policy %s, bans %d-%d", s.MinSlots, s.MaxSlots, shares, s.Policy, s.Ban, s.MaxBan)
}
