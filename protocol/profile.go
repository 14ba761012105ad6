package protocol

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/protocol/setting"
)

// MaxProfiles is how many earlier profiles a profile names.
const MaxProfiles = 8

// Profile are the settings that the members of a cluster share. It is part of each configuration, so it follows from
// the log, and snapshots have it. A change of kind [Tune] replaces it.
type Profile struct {
	// Version is 1 for the first profile, and one more for each change. 0: the log has no profile, as logs of earlier
	// versions. Each member then has the settings that it was started with, until the leader has proposed the first.
	Version uint64 `json:"version,omitempty"`
	// Core is the name of the core that the instances have under the profile, as in [Info].Name; "": that with which
	// the log began.
	Core string `json:"core,omitempty"`
	// Values are complete: a setting that they omit has its default.
	Values setting.Values `json:"values,omitzero"`
	// Since is the time of the change by the clock of the member that proposed it, in Unix milliseconds; 0: it is not
	// known. No rule depends on it.
	Since int64 `json:"since,omitempty"`
	// Earlier are the profiles before, oldest first, without their own Earlier; at most [MaxProfiles].
	Earlier []Profile `json:"earlier,omitempty"`
}

// Sealed reports whether the log had a seal before: each seal names a core.
func (p *Profile) Sealed() bool { return p.Core != "" }

// Equal reports whether two profiles have the same version, core and values.
func (p *Profile) Equal(o *Profile) bool {
	return p.Version == o.Version && p.Core == o.Core && p.Values == o.Values
}

// Differences describes how the values differ from those of the profile before; see [setting.Differences].
func (p *Profile) Differences(before *Profile) string {
	return setting.Differences(before.Values, p.Values)
}

// Had reports whether a profile is this one, or one of those before.
func (p *Profile) Had(o *Profile) bool {
	return p.Equal(o) || slices.ContainsFunc(p.Earlier, func(e Profile) bool { return e.Equal(o) })
}

// Find returns the profile with a version: this one, or one of those before.
func (p *Profile) Find(version uint64) (Profile, bool) {
	if version == p.Version {
		return *p, true
	}
	i := slices.IndexFunc(p.Earlier, func(e Profile) bool { return e.Version == version })
	if i < 0 {
		return Profile{}, false
	}
	return p.Earlier[i], true
}

// Next returns the profile with other values, which replaces p. It has the same core.
func (p *Profile) Next(v setting.Values, since int64) Profile {
	return p.switched(&Profile{Core: p.Core, Values: v, Since: since})
}

// switched returns the profile with the core and the values of another one, which replaces p.
func (p *Profile) switched(to *Profile) Profile {
	n := Profile{
		Version: p.Version + 1, Core: to.Core, Values: to.Values, Since: to.Since, Earlier: slices.Clone(p.Earlier),
	}
	if p.Version > 0 {
		n.Earlier = append(n.Earlier, Profile{Version: p.Version, Core: p.Core, Values: p.Values, Since: p.Since})
	}
	if extra := len(n.Earlier) - MaxProfiles; extra > 0 {
		n.Earlier = n.Earlier[extra:]
	}
	return n
}

// ProfileError indicates that a profile of the log has a setting that this program does not know, or a value that it
// does not allow. The member has changed nothing, and stops. A retry does not help: it needs the program that the
// members have that proposed the profile.
type ProfileError struct {
	Version uint64
	Err     error // what is wrong: a [*setting.Error] or a [*SettingsError]
}

func (e *ProfileError) Error() string {
	return fmt.Sprintf("braid: this program cannot have the settings of profile %d of the log: %v", e.Version, e.Err)
}

func (e *ProfileError) Unwrap() error { return e.Err }

// tune replaces the profile, or returns the reason why that is invalid. A change names the version after the one that
// it replaces, so a change that was computed on another profile has no effect.
func (c *Config) tune(ch *Change) Reason {
	switch {
	case ch.Profile.Version != c.Profile.Version+1:
		return ReasonProfile
	case ch.Profile.Version > 1 && ch.Profile.Values == c.Profile.Values:
		return ReasonNoChange
	}
	c.Profile = c.Profile.Next(ch.Profile.Values, ch.Profile.Since)
	return ReasonNone
}
