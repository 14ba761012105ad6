package slots

import (
	"errors"
	"slices"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// Numbered returns a copy of a configuration in which all members have slots, which ballots need.
func Numbered(c protocol.Config) protocol.Config {
	c = c.Clone()
	c.Number()
	return c
}

// Readable reports whether an entry has a configuration that can become active. Other kinds of entries are always
// readable.
func Readable(e *protocol.Entry) bool {
	if e.Kind != protocol.EntryConfig {
		return true
	}
	_, err := protocol.DecodeConfig(e.Payload)
	return err == nil
}

// Others is the leader's view of the other members.
type Others struct {
	// Answers: the member is active. CaughtUp: it is active and has what was decided a heartbeat ago, with its bodies.
	// Holds: it certainly has the bodies of all decided entries; nil: it is not needed.
	Answers, CaughtUp, Holds func(protocol.MemberID) bool
}

// Changed returns a configuration after changes, or the reason for refusing them.
func Changed(
	c *protocol.Config, changes []protocol.Change, quorums quorum.System, o Others,
) (protocol.Config, protocol.Reason) {
	next, reason := c.Changed(changes)
	switch {
	case reason != protocol.ReasonNone:
		return next, reason
	case len(protocol.EncodeConfig(next)) > protocol.MaxConfigBytes &&
		(len(next.Members) > len(c.Members) || !next.Profile.Equal(&c.Profile)):
		return next, protocol.ReasonTooLarge
	case !next.Profile.Equal(&c.Profile):
		return next, protocol.ReasonNone // the members are the same
	case misfit(&next, quorums) != protocol.ReasonNone:
		return next, misfit(&next, quorums)
	case SameQuorums(quorums, c, &next):
		return next, protocol.ReasonNone
	}
	return next, progressAfter(c, &next, quorums, o)
}

// SameQuorums reports whether two configurations have the same quorums: the same voters, and where the quorums depend
// on their zones, in the same zones.
func SameQuorums(quorums quorum.System, a, b *protocol.Config) bool {
	return quorums.Same(quorum.VotersOf(a), quorum.VotersOf(b))
}

// misfit returns the reason why the voters of a configuration cannot form the quorums, also with those that are about
// to become voters. A joining member may have no zone yet: it becomes a voter once it has one.
func misfit(c *protocol.Config, quorums quorum.System) protocol.Reason {
	voters, zones := len(c.Voters()), quorum.ZonesOf(c)
	if reason := reasonOf(quorums.Fits(voters, zones)); reason != protocol.ReasonNone {
		return reason
	}
	for i := range c.Members {
		switch m := &c.Members[i]; {
		case !m.Joining:
			continue
		case m.Zone != "":
			zones = append(zones, m.Zone)
		}
		voters++
	}
	return reasonOf(quorums.Fits(voters, zones))
}

func reasonOf(err error) protocol.Reason {
	misfit := (*quorum.FitError)(nil)
	switch {
	case err == nil:
		return protocol.ReasonNone
	case errors.As(err, &misfit) && misfit.Zones > 0 && misfit.Why >= quorum.NoZone:
		return protocol.ReasonZones
	}
	return protocol.ReasonQuorums
}

// progressAfter refuses a change unless the voters after it can decide it, and continue after it: quorums of both
// phases are active, and none of the learners among them is far behind. A cluster of one can only grow by waiting for
// its second member.
func progressAfter(c, next *protocol.Config, quorums quorum.System, o Others) protocol.Reason {
	for _, id := range next.Voters() {
		if m := c.Find(id); m != nil && m.Learner && !o.CaughtUp(id) {
			return protocol.ReasonUnsafeChange
		}
	}
	if grows := len(c.Voters()) == 1 && len(next.Voters()) == 2; !grows && !Quorate(quorums, next, o.Answers) {
		return protocol.ReasonUnsafeChange
	}
	return protocol.ReasonNone
}

// Quorate reports whether the voters of a configuration that answer are enough to elect and to decide.
func Quorate(quorums quorum.System, c *protocol.Config, answers func(protocol.MemberID) bool) bool {
	vote := func(id protocol.MemberID) quorum.Answer {
		if answers(id) {
			return quorum.Granted
		}
		return quorum.Missing
	}
	voters := quorum.Of(c)
	return quorums.Elects(voters).Vote(vote) == quorum.Won && quorums.Decides(voters).Vote(vote) == quorum.Won
}

// NextConfig returns the entry of a change, not yet sealed, or the reason for refusing the change. The change is
// checked again when its slot is next: other changes may have been decided in between.
func NextConfig(c *protocol.Config, in *protocol.ProposeChange, quorums quorum.System, o Others,
	b *Bodies) (e protocol.Entry, reason protocol.Reason) {
	next, reason := Changed(c, in.Changes, quorums, o)
	if reason == protocol.ReasonNone && o.Holds != nil && !SameQuorums(quorums, c, &next) {
		reason = b.Kept(quorums.Elects(quorum.Of(&next)), o.Holds)
	}
	if reason != protocol.ReasonNone {
		return e, reason
	}
	return protocol.NewConfig(in.ID, next), protocol.ReasonNone
}

// Removed reports whether a member was removed.
func Removed(c *protocol.Config, id protocol.MemberID) bool { return slices.Contains(c.Removed, id) }

// RefuseChange returns the reason for which a member refuses a change, apart from reasons of the leader's state.
func RefuseChange(c *protocol.Config, self protocol.MemberID, role protocol.Role, leader protocol.MemberID,
	in *protocol.ProposeChange) protocol.Reason {
	switch {
	case Removed(c, self):
		return protocol.ReasonRemoved
	case role != protocol.Leader && leader != 0:
		return protocol.ReasonNotLeader
	case role != protocol.Leader:
		return protocol.ReasonNoLeader
	case in.Target != nil:
		return protocol.ReasonInvalidChange // the protocol has no instances that follow others
	}
	return protocol.ReasonNone
}

// Joiner returns the change that makes a joining member a voter, once one is caught up.
func Joiner(c *protocol.Config, caughtUp func(protocol.MemberID) bool) (protocol.ProposeChange, bool) {
	for i := range c.Members {
		if m := &c.Members[i]; m.Joining && caughtUp(m.ID) {
			return protocol.ProposeChange{Changes: []protocol.Change{{Kind: protocol.AddVoter,
				Member: protocol.Member{ID: m.ID}}}}, true
		}
	}
	return protocol.ProposeChange{}, false
}
