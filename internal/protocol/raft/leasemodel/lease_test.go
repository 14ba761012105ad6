package leasemodel

import (
	"testing"

	"github.com/braidlog/braid/internal/testsize"
)

// base is a cluster of three in which one member may stand once.
func base(change func(c *model)) *model {
	c := &model{voters: all, later: all, terms: 2, may: budget{stands: 1}, flying: 2}
	change(c)
	return c
}

const limit = 6_000_000

// search is one search. What takes more than a second is searched only if it is asked for.
type search struct {
	name   string
	deep   bool
	want   string
	change func(c *model)
}

func (s search) run(t *testing.T, deep bool) {
	t.Run(s.name, func(t *testing.T) {
		if deep || !s.deep {
			run(t, base(s.change), limit, s.want)
		}
	})
}

// The rules hold.
func TestRulesHold(t *testing.T) {
	for _, s := range []search{
		{name: "two who stand", change: func(c *model) { c.may.stands = 2 }},
		{name: "a restart and a transfer, one message", change: func(c *model) {
			c.may.restarts, c.may.transfers,
				c.flying = 1, 1, 1
		}},
		{name: "heartbeats and a write, one message", change: func(c *model) {
			c.may.writes, c.beats, c.flying = 1, true,
				1
		}},
		{name: "a voter is removed, one message", change: func(c *model) { c.later, c.flying = 0b011, 1 }},
		{name: "the leader is removed, one message", change: func(c *model) { c.later, c.flying = 0b110, 1 }},
		{name: "the leader is replaced, one message", change: func(c *model) {
			c.voters, c.later, c.joint, c.flying = 0b011,
				0b110, true, 1
		}},
		{name: "three messages", deep: true, change: func(c *model) { c.flying = 3 }},
		{name: "a restart", deep: true, change: func(c *model) { c.may.restarts = 1 }},
		{name: "a restart with a new log", change: func(c *model) { c.fresh, c.may.restarts = true, 1 }},
		{name: "a transfer", deep: true, change: func(c *model) { c.may.transfers = 1 }},
		{name: "a learner becomes a voter", deep: true, change: func(c *model) { c.voters = 0b011 }},
		{name: "a voter is removed", deep: true, change: func(c *model) { c.later = 0b011 }},
		{name: "the leader is removed", deep: true, change: func(c *model) { c.later = 0b110 }},
		{name: "a voter is replaced, by a joint configuration", deep: true,
			change: func(c *model) { c.voters, c.later, c.joint = 0b011, 0b101, true }},
		{name: "the leader is replaced, by a joint configuration", deep: true,
			change: func(c *model) { c.voters, c.later, c.joint = 0b011, 0b110, true }},
		{name: "read by index", deep: true, change: func(c *model) { c.byIndex = true }},
		{name: "read by index, a learner becomes a voter", deep: true,
			change: func(c *model) { c.byIndex, c.voters, c.flying = true, 0b011, 1 }},
		{name: "a follower's question", change: func(c *model) { c.byIndex, c.forwarded = true, true }},
		{name: "a follower's question, a restart and a transfer, one message", change: func(c *model) {
			c.byIndex, c.forwarded, c.may.restarts, c.may.transfers, c.flying = true, true, 1, 1, 1
		}},
		{name: "a follower's question, two who stand, one message", change: func(c *model) {
			c.byIndex, c.forwarded, c.may.stands, c.terms, c.flying = true, true, 2, 3, 1
		}},
		{name: "a follower's question, a learner becomes a voter, one message", change: func(c *model) {
			c.byIndex, c.forwarded, c.voters, c.flying = true, true, 0b011, 1
		}},
		{name: "a follower's question, the leader is replaced, one message", change: func(c *model) {
			c.byIndex, c.forwarded, c.voters, c.later, c.joint, c.flying = true, true, 0b011, 0b110, true, 1
		}},
	} {
		s.run(t, testsize.Runs(testsize.Models))
	}
}

const stale, staleIndex = "a leader reads by its lease", "a read by index"

// Each variant of the rules is found out. The first one was the rule once.
func TestVariants(t *testing.T) {
	for _, s := range []search{
		{"a promise ends with its term", false, stale, func(c *model) {
			c.promiseOfTerm, c.may.stands, c.flying = true, 2,
				3
		}},
		{"a promise against PreVote only", true, stale, func(c *model) {
			c.promiseOfPreVote, c.ordered, c.flying = true, true,
				4
		}},
		{"a restarted voter promised nothing", false, stale, func(c *model) { c.restartForgets, c.may.restarts = true, 1 }},
		{"a lease after a transfer", false, stale, func(c *model) { c.leaseAfterHand, c.may.transfers = true, 1 }},
		{"a lease from the answer on", false, stale, func(c *model) { c.leaseFromAnswer = true }},
		{"a lease longer than the promise", false, stale, func(c *model) { c.leaseLonger = true }},
		{"a lease before an own entry", true, stale, func(c *model) {
			c.leaseBeforeOwn, c.beats, c.may.writes = true, true,
				1
		}},
		{"a read that nobody confirms", false, staleIndex, func(c *model) { c.byIndex, c.readUnconfirmed = true, true }},
		{"an earlier question confirms", false, staleIndex, func(c *model) {
			c.byIndex, c.questionBefore, c.flying = true, true, 3
		}},
		{"a question is answered before an own entry", true, staleIndex, func(c *model) {
			c.byIndex, c.forwarded, c.questionUnready, c.beats, c.may.writes = true, true, true, true, 1
		}},
		{"an earlier answer confirms", true, staleIndex, func(c *model) { c.byIndex, c.readOldRound = true, true }},
	} {
		s.run(t, testsize.Runs(testsize.Models))
	}
}
