package check

import "fmt"

// Profiles judges the settings that all members share, by version (P1): a version has the same values everywhere, and
// each change of the log makes the next version.
type Profiles struct {
	last   uint64
	values map[uint64]string // of each version so far
}

// NewProfiles begins with the profile of the first configuration; version 0: the log has none.
func NewProfiles(version uint64, values string) *Profiles {
	return &Profiles{last: version, values: map[uint64]string{version: values}}
}

// Last is the version of the last decided profile.
func (p *Profiles) Last() uint64 { return p.last }

// Decide records the profile of the next configuration that the log decides.
func (p *Profiles) Decide(version uint64, values string) error {
	if version == p.last+1 {
		p.last, p.values[version] = version, values
	}
	if version != p.last {
		return fmt.Errorf("P1: the log decides version %d of the profile after version %d", version, p.last)
	}
	return p.Has(version, values)
}

// Has judges a decided profile that a member or another instance has.
func (p *Profiles) Has(version uint64, values string) error {
	if is, ok := p.values[version]; !ok {
		return fmt.Errorf("P1: version %d of the profile was not decided", version)
	} else if is != values {
		return fmt.Errorf("P1: version %d of the profile is [%s], elsewhere [%s]", version, values, is)
	}
	return nil
}
