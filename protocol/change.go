package protocol

import "slices"

// Changed returns the configuration after changes that are made together, or the reason why they are invalid. It does
// not check whether a protocol can make them now.
func (c *Config) Changed(changes []Change) (Config, Reason) {
	next := c.Clone()
	next.Number()
	if len(changes) == 0 {
		return next, ReasonNoChange
	}
	if len(changes) > 1 && slices.ContainsFunc(changes, func(ch Change) bool { return ch.Kind == Tune }) {
		return next, ReasonInvalidChange
	}
	for i := range changes {
		for j := range i {
			if changes[j].Member.ID == changes[i].Member.ID {
				return next, ReasonNoChange
			}
		}
		if reason := next.apply(&changes[i]); reason != ReasonNone {
			return next, reason
		}
	}
	if len(next.Voters()) == 0 {
		return next, ReasonLastVoter
	}
	if next.Validate() != nil {
		return next, ReasonInvalidChange
	}
	if next.PeerURLTaken(changes) {
		return next, ReasonPeerURLTaken
	}
	return next, ReasonNone
}

// apply makes one change, or returns the reason why it is invalid.
func (c *Config) apply(ch *Change) Reason {
	if reason := ch.Check(); reason != ReasonNone {
		return reason
	}
	if ch.Kind == Tune {
		return c.tune(ch)
	}
	m := ch.Member
	have := c.Find(m.ID)
	switch {
	case have == nil && slices.Contains(c.Removed, m.ID):
		return ReasonRemovedID
	case have == nil && (ch.Kind == RemoveMember || ch.Kind == UpdateMember):
		return ReasonUnknownMember
	}
	switch ch.Kind {
	case AddVoter, AddLearner, AddJoining:
		m.Learner, m.Joining = ch.Kind != AddVoter, ch.Kind == AddJoining
		if have == nil {
			if c.Slots == Rows {
				return ReasonMembersUsedUp
			}
			m.Slot = uint8(c.Slots)
			c.Slots++
			i := 0
			for i < len(c.Members) && c.Members[i].ID < m.ID {
				i++
			}
			c.Members = slices.Insert(c.Members, i, m)
			return ReasonNone
		}
		if !have.Learner || m.Learner {
			return ReasonMemberKnown
		}
		have.Learner, have.Joining = false, false
		have.Amend(&m)
		return ReasonNone
	case RemoveMember:
		c.Members = slices.DeleteFunc(c.Members, func(x Member) bool { return x.ID == m.ID })
		i, _ := slices.BinarySearch(c.Removed, m.ID)
		c.Removed = slices.Insert(c.Removed, i, m.ID)
		return ReasonNone
	case UpdateMember:
		have.Amend(&m)
		if c.Lineage == 0 {
			c.Lineage = ch.Lineage
		}
		c.Format = max(c.Format, ch.Format)
		return ReasonNone
	}
	return ReasonChangeKind
}

// Adds reports whether the change makes a member of one that may be none yet.
func (ch *Change) Adds() bool {
	return ch.Kind == AddVoter || ch.Kind == AddLearner || ch.Kind == AddJoining
}

// Check returns the reason why a change is invalid in any configuration.
func (ch *Change) Check() Reason {
	switch {
	case ch.Kind < AddVoter || ch.Kind > Tune, (ch.Kind == Tune) != (ch.Profile != nil):
		return ReasonChangeKind
	case ch.Kind == Tune && ch.Member.ID != 0:
		return ReasonInvalidChange
	case ch.Kind != Tune && ch.Member.ID == 0:
		return ReasonMemberID
	case CheckZone(ch.Member.Zone) != nil:
		return ReasonZone
	}
	return ReasonNone
}
