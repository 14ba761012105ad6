package issmodel

import (
	"strings"
	"testing"

	"github.com/braidlog/braid/internal/explore"
	"github.com/braidlog/braid/internal/testsize"
)

// skips is one sequence number in ballots 0, 1 and 2, with quorums of the given sizes in each phase.
func skips(members, phase1, phase2 int) *skipModel {
	return &skipModel{members: members, phase1: phase1, phase2: phase2, numbers: 1, highest: 2}
}

// with is three members and majorities, under other rules.
func with(r skipRules) *skipModel {
	m := skips(3, 2, 2)
	m.skipRules = r
	return m
}

// The rules hold, with one sequence number and ballots 0, 1 and 2.
func TestSkipHolds(t *testing.T) {
	testsize.Long(t)
	t.Run("majorities", func(t *testing.T) { run(t, skips(3, 2, 2), quickLimit, "") })
	t.Run("one vote decides", func(t *testing.T) { run(t, skips(3, 3, 1), quickLimit, "") })
	t.Run("one promise is enough", func(t *testing.T) { run(t, skips(3, 1, 3), quickLimit, "") })
}

func TestSkipDeep(t *testing.T) {
	if !testsize.Runs(testsize.Deep) {
		return
	}
	further := skips(3, 2, 2)
	further.highest = 3
	two := skips(3, 2, 2)
	two.numbers = 2
	for _, c := range []struct {
		name string
		m    *skipModel
	}{
		{"ballots 0 to 3", further},
		{"four members", skips(4, 3, 3)},
		{"four members, two votes decide", skips(4, 3, 2)},
		{"four members, two promises are enough", skips(4, 2, 3)},
		{"two sequence numbers", two},
	} {
		t.Run(c.name, func(t *testing.T) { run(t, c.m, deepLimit, "") })
	}
}

// The search covers both cases in which an elected proposer decides ⊥ at once, and the leader's own ballot 1 after a
// restart.
func TestSkipTakesItsWays(t *testing.T) {
	const all, declared = "ballot 1 decides ⊥ for sequence number 1 at once, having heard 3 members",
		"ballot 2 decides ⊥ for sequence number 1 at once, having heard 2 members"
	seen := map[string]bool{}
	m := skips(3, 2, 2)
	r := explore.Search(searched(m), quickLimit, func(s *segment, text step) {
		if s.incarnation == retired && strings.HasPrefix(text.String(), "1 opens") {
			seen["own ballot"] = true
		}
		seen[text.String()] = true
	})
	if !r.Whole || !seen[all] || !seen[declared] || !seen["own ballot"] {
		t.Errorf("not all ways: %v", seen)
	}
}

// Each variant has the result in its line.
func TestSkipVariants(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules skipRules
		want  string
	}{
		{"an elected proposer's ⊥ is decided when it is sent", skipRules{fastAlways: true}, "disagreement"},
		{"it is, where a quorum promised and nobody had voted", skipRules{fastQuorum: true}, "disagreement"},
		{"started0 is not durable", skipRules{noStarted: true}, "disagreement"},
		{"ballot 0 is used again", skipRules{startsAgain: true}, "disagreement"},
		{"promises leave out what is decided", skipRules{hidesDecided: true}, "disagreement"},
		{"a leader that restarted declares what it has no vote for", skipRules{neverFromDisk: true}, "disagreement"},
		{"a declaration does not bind", skipRules{neverBroken: true}, "disagreement"},
		{"a declaration binds in memory only", skipRules{neverForgotten: true}, "disagreement"},
		{"a ballot is opened before that is durable", skipRules{openForgotten: true}, "disagreement"},
		{"a promise leaves before it is durable", skipRules{promiseLost: true}, "disagreement"},
		{"a vote leaves before it is durable", skipRules{voteLost: true}, "disagreement"},
		{"members suspect whom they saw revoked", skipRules{suspectsSeen: true}, "leaders differ"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := with(c.rules)
			m.ignoreAgain = true
			if c.rules.openForgotten {
				m.highest = 1
			}
			run(t, m, quickLimit, c.want)
		})
	}
	t.Run("ballot 0 is used again, as such", func(t *testing.T) {
		run(t, with(skipRules{startsAgain: true}), quickLimit, "ballot 0 is used again")
	})
}

// A promise need not list decisions as long as it lists votes: only a member that forgets votes must list decisions.
func TestSkipNeedsNoDecisionsWhereVotesStay(t *testing.T) {
	run(t, with(skipRules{votesOnly: true}), quickLimit, "")
}
