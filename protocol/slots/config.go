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

// Readable reports whether an entry is a configuration that can be in force, or none.
func Readable(e *protocol.Entry) bool {
	if e.Kind != protocol.EntryConfig {
		return true
	}
	_, err := protocol.DecodeConfig(e.Payload)
	return err == nil
}

// Changed is a configuration after changes, or why they are not made. wise says whether to make one that
// changes the voters.
func Changed(c *protocol.Config, changes []protocol.Change, wise func(next *protocol.Config) protocol.Reason) (protocol.Config, protocol.Reason) {
	next, reason := c.Changed(changes)
	switch {
	case reason != protocol.ReasonNone:
		return next, reason
	case len(protocol.EncodeConfig(next)) > protocol.MaxConfigBytes && len(next.Members) > len(c.Members):
		return next, protocol.ReasonTooLarge
	case slices.Equal(next.Voters(), c.Voters()):
		return next, protocol.ReasonNone
	}
	return next, wise(&next)
}

// Wise reports whether the voters after a change can decide it, and go on after it: a quorum of them answers,
// and none of the learners among them is far behind. A cluster of one can only grow by waiting for its second
// member.
func Wise(c, next *protocol.Config, decide quorum.Set, answers, caughtUp func(protocol.MemberID) bool) protocol.Reason {
	for _, id := range next.Voters() {
		if m := c.Find(id); m != nil && m.Learner && !caughtUp(id) {
			return protocol.ReasonUnsafeChange
		}
	}
	quorate := decide.Vote(func(id protocol.MemberID) quorum.Answer {
		if answers(id) {
			return quorum.Granted
		}
		return quorum.Missing
	}) == quorum.Won
	if grows := len(c.Voters()) == 1 && len(next.Voters()) == 2; !grows && !quorate {
		return protocol.ReasonUnsafeChange
	}
	return protocol.ReasonNone
}

// ConfigEntry is the entry that makes a configuration, not yet sealed.
func ConfigEntry(c protocol.Config, id protocol.ProposalID) protocol.Entry {
	e := protocol.Entry{Kind: protocol.EntryConfig, ID: id, Payload: protocol.EncodeConfig(c)}
	e.SealPayload()
	return e
}
