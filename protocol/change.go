package protocol

import "slices"

// Changed returns the configuration after changes that are made together, or why they make no sense.
// Whether a protocol can make them now is not asked.
func (c *Config) Changed(changes []Change) (Config, Reason) {
	next := c.Clone()
	next.Number()
	if len(changes) == 0 {
		return next, ReasonInvalidChange
	}
	for i := range changes {
		for j := range i {
			if changes[j].Member.ID == changes[i].Member.ID {
				return next, ReasonInvalidChange
			}
		}
		if !next.apply(&changes[i]) {
			return next, ReasonInvalidChange
		}
	}
	if next.Validate() != nil {
		return next, ReasonInvalidChange
	}
	if next.PeerURLTaken(changes) {
		return next, ReasonPeerURLTaken
	}
	return next, ReasonNone
}

// apply makes one change and reports whether it makes sense.
func (c *Config) apply(ch *Change) bool {
	m := ch.Member
	have := c.Find(m.ID)
	switch ch.Kind {
	case AddVoter, AddLearner, AddJoining:
		m.Learner, m.Joining = ch.Kind != AddVoter, ch.Kind == AddJoining
		if have == nil {
			if c.Slots == Rows {
				return false
			}
			m.Slot = uint8(c.Slots)
			c.Slots++
			i := 0
			for i < len(c.Members) && c.Members[i].ID < m.ID {
				i++
			}
			c.Members = slices.Insert(c.Members, i, m)
			return true // ids that were removed are caught by Validate
		}
		if !have.Learner || m.Learner {
			return false
		}
		have.Learner, have.Joining = false, false
		have.Amend(&m)
		return true
	case RemoveMember:
		if have == nil {
			return false
		}
		c.Members = slices.DeleteFunc(c.Members, func(x Member) bool { return x.ID == m.ID })
		i, _ := slices.BinarySearch(c.Removed, m.ID)
		c.Removed = slices.Insert(c.Removed, i, m.ID)
		return true
	case UpdateMember:
		if have == nil {
			return false
		}
		have.Amend(&m)
		return true
	}
	return false
}
