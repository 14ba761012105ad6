package judge

import (
	"errors"
	"fmt"

	"github.com/braidlog/braid/protocol"
)

// decideProfile judges the profile of a configuration that an instance decides. The first instance decides profiles,
// and the others follow it, perhaps over several versions at once.
func (c *Court) decideProfile(j *Instance, p *protocol.Profile) error {
	if j == c.First {
		return errors.Join(c.Profiles.Decide(p.Version, textOf(p)), c.Fits.decide(p))
	}
	if p.Version < j.profile {
		return fmt.Errorf("P1: instance %d goes back from version %d of the profile to %d", j.ID, j.profile, p.Version)
	}
	j.profile = p.Version
	return c.Profiles.Has(p.Version, textOf(p))
}

// textOf is the content of a profile.
func textOf(p *protocol.Profile) string { return p.Core + " " + p.Values.String() }

// Grows judges that the log of one instance gets others only if its core can be merged, and once it has a profile:
// before that, a member may run an earlier version, which ignores the change.
func (c *Court) Grows(instances int, merges bool) error {
	if instances > 1 && !merges {
		return fmt.Errorf("the log gets %d instances of a core that cannot be merged", instances)
	}
	if c.rules.Single && instances > 1 && c.Profiles.Last() == 0 {
		return fmt.Errorf("the log gets %d instances before it has a profile", instances)
	}
	return nil
}

// FollowsProfile judges, at the end, that a member uses the last profile in an instance.
func (c *Court) FollowsProfile(instance protocol.InstanceID, p *protocol.Profile) error {
	c.Settle()
	if last := &c.First.Last().Profile; !p.Equal(last) {
		return fmt.Errorf("P1: uses version %d of the profile in instance %d; the last one is %d", p.Version, instance,
			last.Version)
	}
	return nil
}

// Profile judges a decided profile that a member has applied, or has in a snapshot. was is the version that it had
// before.
func (c *Court) Profile(p *protocol.Profile, was uint64) error {
	c.Settle()
	if p.Version < was {
		return fmt.Errorf("P1: goes back from version %d of the profile to %d", was, p.Version)
	}
	return c.Profiles.Has(p.Version, textOf(p))
}
