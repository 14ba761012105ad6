package protocol

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Seal is the payload of an [EntrySeal]: the log continues behind it in new instances, under a profile that no running
// instance can change to: another core or other quorums (internal/member/switchmodel). The entry takes effect
// at the last position that the order of the sealed instances fills: see order.Plan. It takes effect only if it
// counts there; otherwise it does nothing, on all members alike.
type Seal struct {
	// Profile is the one behind the seal. Its version is one more than the version of the profile that it replaces.
	Profile Profile `json:"profile"`
	// Members is the membership that the seal expects where it takes effect. The new instances begin with it.
	Members Config `json:"members"`
	// Instances is how many new instances there are, 1 to [MaxInstances]. Merged: they are merged round by round, even
	// if there is one.
	Instances int  `json:"instances"`
	Merged    bool `json:"merged,omitempty"`
}

// Brought reports whether a log of this many instances, under the active profile, began with the seal or with a later
// one. A profile does not have the number of instances. So if only seals change the number (fixed), another number
// under the same core shows that another seal to the same profile has counted, now or since.
func (s *Seal) Brought(active *Profile, instances int, fixed bool) bool {
	return active.Had(&s.Profile) && (!fixed || active.Core != s.Profile.Core || instances == s.Instances)
}

// NewSeal returns the entry that seals the log, not yet sealed with its place.
func NewSeal(s Seal) Entry {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings and numbers only: cannot fail
	}
	e := Entry{Kind: EntrySeal, Payload: b}
	e.SealPayload()
	e.Seal(0, 0, make([]byte, HeadSize))
	return e
}

// DecodeSeal reads the payload of an EntrySeal.
func DecodeSeal(b []byte) (s Seal, err error) {
	if err := json.Unmarshal(b, &s); err != nil {
		return s, &CorruptError{What: "seal", Detail: err.Error()}
	}
	return s, s.validate()
}

func (s *Seal) validate() error {
	switch {
	case s.Instances < 1 || s.Instances > MaxInstances:
		return &CorruptError{What: "seal", Detail: fmt.Sprintf("%d instances", s.Instances)}
	case s.Instances > 1 && !s.Merged:
		return &CorruptError{What: "seal", Detail: fmt.Sprintf("%d instances that are not merged", s.Instances)}
	case s.Profile.Version < 2:
		return &CorruptError{What: "seal", Detail: fmt.Sprintf("profile %d replaces none", s.Profile.Version)}
	case s.Members.Joint():
		return &CorruptError{What: "seal", Detail: "the membership is joint"}
	}
	return s.Members.Validate()
}

// SealedAt is the index up to which the entry's own instance fills the old order: that of an EntrySeal, or a later one
// that its proposer named, as the last one of an epoch.
func (e *Entry) SealedAt() Index { return max(e.Index, Index(e.Low)) }

// Counts reports whether the seal takes effect where the active instances have these memberships: the profile is the
// one that it replaces, and all instances have the membership that it expects, which is not joint.
func (s *Seal) Counts(configs []Config) bool {
	return len(configs) > 0 && configs[0].Profile.Version+1 == s.Profile.Version &&
		!slices.ContainsFunc(configs, func(c Config) bool { return c.Joint() || !c.SameMembers(&s.Members) })
}

// Begin is the membership with which a new instance begins: that of a sealed instance, under the next profile.
func (s *Seal) Begin(at *Config) Config {
	c := at.Clone()
	c.Profile = at.Profile.switched(&s.Profile)
	return c
}
