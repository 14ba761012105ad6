package slots

import (
	"slices"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// Numbered is a configuration of its own in which all members have slots. Ballots need them.
func Numbered(c protocol.Config) protocol.Config {
	c = c.Clone()
	c.Number()
	return c
}

// Readable reports whether an entry is a configuration that can be active, or none.
func Readable(e *protocol.Entry) bool {
	if e.Kind != protocol.EntryConfig {
		return true
	}
	_, err := protocol.DecodeConfig(e.Payload)
	return err == nil
}

// Others is the leader's view of the other members.
type Others struct {
	// Answers: the member is well. CaughtUp: besides, it has what was decided a heartbeat ago, and its bodies. Holds: it
	// certainly has the bodies of all that is decided; nil: no one asks.
	Answers, CaughtUp, Holds func(protocol.MemberID) bool
}

// Changed is a configuration after changes, or why they are not made.
func Changed(c *protocol.Config, changes []protocol.Change, quorums quorum.System, o Others) (protocol.Config, protocol.Reason) {
	next, reason := c.Changed(changes)
	switch {
	case reason != protocol.ReasonNone:
		return next, reason
	case len(protocol.EncodeConfig(next)) > protocol.MaxConfigBytes && len(next.Members) > len(c.Members):
		return next, protocol.ReasonTooLarge
	case !fits(&next, quorums):
		return next, protocol.ReasonQuorums
	case slices.Equal(next.Voters(), c.Voters()):
		return next, protocol.ReasonNone
	}
	return next, wise(c, &next, quorums, o)
}

// fits reports whether there are quorums with the voters of a configuration, and with those that are about to become
// voters.
func fits(c *protocol.Config, quorums quorum.System) bool {
	voters, joining := len(c.Voters()), 0
	for i := range c.Members {
		if c.Members[i].Joining {
			joining++
		}
	}
	return quorums.Fits(voters) == nil && quorums.Fits(voters+joining) == nil
}

// wise reports whether the voters after a change can decide it, and go on after it: quorums of both phases answer,
// and none of the learners among them is far behind. A cluster of one can only grow by waiting for its second
// member.
func wise(c, next *protocol.Config, quorums quorum.System, o Others) protocol.Reason {
	for _, id := range next.Voters() {
		if m := c.Find(id); m != nil && m.Learner && !o.CaughtUp(id) {
			return protocol.ReasonUnsafeChange
		}
	}
	answers := func(id protocol.MemberID) quorum.Answer {
		if o.Answers(id) {
			return quorum.Granted
		}
		return quorum.Missing
	}
	voters := quorum.Of(next)
	quorate := quorums.Elects(voters).Vote(answers) == quorum.Won && quorums.Decides(voters).Vote(answers) == quorum.Won
	if grows := len(c.Voters()) == 1 && len(next.Voters()) == 2; !grows && !quorate {
		return protocol.ReasonUnsafeChange
	}
	return protocol.ReasonNone
}

// NextConfig makes the entry of a change, not yet sealed, or explains why the change is not made. Whether it still
// makes sense is decided when its slot has come: something may have been decided in between.
func NextConfig(c *protocol.Config, in *protocol.ProposeChange, quorums quorum.System, o Others, b *Bodies) (e protocol.Entry, reason protocol.Reason) {
	next, reason := Changed(c, in.Changes, quorums, o)
	if reason == protocol.ReasonNone && o.Holds != nil && !slices.Equal(next.Voters(), c.Voters()) {
		reason = b.Kept(quorums.Elects(quorum.Of(&next)), o.Holds)
	}
	if reason != protocol.ReasonNone {
		return e, reason
	}
	e = protocol.Entry{Kind: protocol.EntryConfig, ID: in.ID, Payload: protocol.EncodeConfig(next)}
	e.SealPayload()
	return e, protocol.ReasonNone
}

// Removed reports whether a member was removed for ever.
func Removed(c *protocol.Config, id protocol.MemberID) bool { return slices.Contains(c.Removed, id) }

// Takes explains why a member does not take a change in, if that is not because of what the leader is doing.
func Takes(c *protocol.Config, self protocol.MemberID, role protocol.Role, leader protocol.MemberID, in *protocol.ProposeChange) protocol.Reason {
	switch {
	case Removed(c, self):
		return protocol.ReasonRemoved
	case role != protocol.Leader && leader != 0:
		return protocol.ReasonNotLeader
	case role != protocol.Leader:
		return protocol.ReasonNoLeader
	case in.Target != nil:
		return protocol.ReasonInvalidChange // instances of these protocols are not merged
	}
	return protocol.ReasonNone
}

// Joiner is the change that makes a joining member a voter, once one is caught up.
func Joiner(c *protocol.Config, caughtUp func(protocol.MemberID) bool) (protocol.ProposeChange, bool) {
	for i := range c.Members {
		if m := &c.Members[i]; m.Joining && caughtUp(m.ID) {
			return protocol.ProposeChange{Changes: []protocol.Change{{Kind: protocol.AddVoter, Member: protocol.Member{ID: m.ID}}}}, true
		}
	}
	return protocol.ProposeChange{}, false
}
