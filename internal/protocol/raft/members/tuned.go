package members

import (
	"math"
	"time"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
)

// A profile is active from the index of its configuration on, decided or not. What members promise to each other
// depends on time, and two of them may have different profiles. Each uses the stricter: docs/internals/raft.md,
// "Changes of the timeout and of leases". Package tunemodel is a model of that.

// Usable returns a [*protocol.ProfileError] if this program cannot have the profile of a configuration.
func (c *Configs) Usable(next *protocol.Config) error {
	_, err := c.tuned(&next.Profile)
	return err
}

// tuned returns the settings under a profile. Configurations in a row with the same profile share them.
func (c *Configs) tuned(p *protocol.Profile) (*protocol.Settings, error) {
	if n := len(c.all); n > 0 && c.all[n-1].config.Profile.Equal(p) {
		return c.all[n-1].settings, nil
	}
	s, err := common.Tuned(c.born, c.own, p)
	if err != nil {
		return nil, err
	}
	if rs := protocol.PlacementRS; s.Placement != c.born.Placement && (s.Placement == rs || c.born.Placement == rs) ||
		s.Placement == rs && s.MaxK != c.born.MaxK {
		return nil, &protocol.ProfileError{Version: p.Version,
			Err: &protocol.SettingsError{Detail: "placement rs and its number of fragments do not change"}}
	}
	return &s, nil
}

// Promise is for how long after it heard from a leader this member elects no other: the longest timeout of the
// profiles from the last one that it knows to be decided to the newest. leases: a leader may have one, as any of them
// says.
func (c *Configs) Promise(commit protocol.Index) (timeout time.Duration, leases bool) {
	k := len(c.all) - 1
	if c.settings.Mutant == MutantPromiseDecided {
		k = c.lastDecided(commit)
	}
	for ; ; k-- {
		s := c.all[k].settings
		timeout, leases = max(timeout, s.ElectionTimeout), leases || s.LeaseReads
		if k == 0 || c.all[k].index <= commit || c.settings.Mutant == MutantPromiseNewest ||
			c.settings.Mutant == MutantShortenLate {
			return timeout, leases
		}
	}
}

// lastDecided is the place of the last configuration that is known to be decided, for a mutant.
func (c *Configs) lastDecided(commit protocol.Index) int {
	k := len(c.all) - 1
	for k > 0 && c.all[k].index > commit {
		k--
	}
	return k
}

// Strict is the shortest election timeout of the same profiles.
func (c *Configs) Strict(commit protocol.Index) time.Duration {
	for k, timeout := len(c.all)-1, time.Duration(math.MaxInt64); ; k-- {
		timeout = min(timeout, c.all[k].settings.ElectionTimeout)
		if k == 0 || c.all[k].index <= commit {
			return timeout
		}
	}
}

// Lease is for how long after it was sent a message counts for a leader's lease that a member answered whose log
// matches the leader's up to an index: the shortest lease of the profiles from the newest one that the member has to
// the newest of all. One that has no configuration of this log may obey an older one than any of them, and counts for
// nothing. Founding members have the founding configuration.
func (c *Configs) Lease(id protocol.MemberID, match, commit protocol.Index) time.Duration {
	if length, wrong := c.wrongLease(commit); wrong {
		return length
	}
	last := len(c.all) - 1
	length := time.Duration(math.MaxInt64)
	for k := last; k >= 0; k-- {
		o := &c.all[k]
		length = min(length, lease(o.settings))
		if o.index <= match {
			if o.index == 0 && o.config.Find(id) == nil {
				return 0
			}
			return length
		}
	}
	if c.settings.Mutant == MutantLaggardCounts {
		return length
	}
	return 0
}

// wrongLease is the lease for a mutant; false: the one of the rule.
func (c *Configs) wrongLease(commit protocol.Index) (time.Duration, bool) {
	last := len(c.all) - 1
	newest := lease(c.all[last].settings)
	switch c.settings.Mutant {
	case MutantLeaseAtOnce:
		return newest, true
	case MutantLeaseByMajority:
		return newest, c.At <= commit
	case MutantShortenLate:
		if c.At > commit && last > 0 {
			return lease(c.all[last-1].settings), true
		}
	}
	return 0, false
}

// lease is the length of a lease under settings; 0: there are none.
func lease(s *protocol.Settings) time.Duration {
	if !s.LeaseReads {
		return 0
	}
	return s.ElectionTimeout - s.MaxClockDrift
}
