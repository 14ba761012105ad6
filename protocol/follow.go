package protocol

import "slices"

// The membership is changed in the first instance, and the others follow it. Each changes its own
// configuration to the first one's in one step, however many changes it missed. Members, slots and
// removed ids are then the same in all instances. The rest of a configuration is each instance's
// own.

// SameMembers reports whether two configurations have the same members, with the same addresses,
// zones, votes and slots, the same removed ids, and the same profile.
func (c *Config) SameMembers(o *Config) bool {
	return c.Slots == o.Slots && c.Profile.Equal(&o.Profile) && slices.Equal(c.Outgoing, o.Outgoing) &&
		slices.Equal(c.Removed, o.Removed) &&
		slices.EqualFunc(c.Members, o.Members, func(a, b Member) bool {
			return a.ID == b.ID && a.Learner == b.Learner && a.Joining == b.Joining && a.Slot == b.Slot && a.Log == b.Log &&
				sameDetails(&a, &b)
		})
}

// sameDetails compares what UpdateMember changes.
func sameDetails(a, b *Member) bool {
	return a.Name == b.Name && a.Zone == b.Zone && slices.Equal(a.PeerURLs, b.PeerURLs) &&
		slices.Equal(a.ClientURLs, b.ClientURLs)
}

// Follow returns c with the members of target. It returns false if target cannot have come from c by changes: target
// is older than c, or one of them is joint. A target that is older only in names, addresses and zones cannot be
// distinguished from a newer one. An instance that follows until it has the same members ends with the right ones.
func (c *Config) Follow(target *Config) (Config, bool) {
	next := c.Clone()
	if c.Joint() || target.Joint() || !c.precedes(target) {
		return next, false
	}
	to := target.Clone()
	for i := range to.Members {
		t := &to.Members[i]
		m := Member{}
		if have := next.Find(t.ID); have != nil {
			m = *have
		}
		m.ID, m.Name, m.PeerURLs, m.ClientURLs, m.Zone, m.Log = t.ID, t.Name, t.PeerURLs, t.ClientURLs, t.Zone, t.Log
		m.Learner, m.Joining, m.Slot = t.Learner, t.Joining, t.Slot
		to.Members[i] = m
	}
	next.Members, next.Removed, next.Slots, next.Profile = to.Members, to.Removed, to.Slots, to.Profile
	next.Number()
	return next, next.Validate() == nil
}

// precedes reports whether changes can lead from c to target. In target no removed member is back,
// no one lost the vote or the identity of its log, no slot has another owner, and the profile is not older.
func (c *Config) precedes(target *Config) bool {
	for _, id := range c.Removed {
		if !slices.Contains(target.Removed, id) {
			return false
		}
	}
	for i := range c.Members {
		m := &c.Members[i]
		switch t := target.Find(m.ID); {
		case t == nil && !slices.Contains(target.Removed, m.ID):
			return false
		case t != nil && (t.Learner && !m.Learner || c.Slots > 0 && t.Slot != m.Slot || !m.Log.IsZero() && t.Log != m.Log):
			return false
		}
	}
	for i := range target.Members {
		if t := &target.Members[i]; c.Find(t.ID) == nil && int(t.Slot) < c.Slots {
			return false
		}
	}
	return target.Slots >= c.Slots && (target.Profile.Version > c.Profile.Version || target.Profile.Equal(&c.Profile))
}

// Changes lists the differences between two configurations by member id, removed members first, the profile last.
func Changes(from, to *Config) []Change {
	var out []Change
	for i := range from.Members {
		if id := from.Members[i].ID; to.Find(id) == nil {
			out = append(out, Change{Kind: RemoveMember, Member: Member{ID: id}})
		}
	}
	for i := range to.Members {
		m := &to.Members[i]
		have := from.Find(m.ID)
		switch {
		case have == nil && m.Joining:
			out = append(out, Change{Kind: AddJoining, Member: *m})
		case have == nil && m.Learner:
			out = append(out, Change{Kind: AddLearner, Member: *m})
		case have == nil, have.Learner && !m.Learner:
			out = append(out, Change{Kind: AddVoter, Member: *m})
		case !sameDetails(have, m), have.Log != m.Log:
			out = append(out, Change{Kind: UpdateMember, Member: *m})
		}
	}
	if !from.Profile.Equal(&to.Profile) {
		out = append(out, Change{Kind: Tune, Profile: &to.Profile})
	}
	return out
}
