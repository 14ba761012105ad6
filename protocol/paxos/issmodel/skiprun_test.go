package issmodel

import (
	"strings"
	"testing"
)

// The rules hold, with one sequence number and ballots 0, 1 and 2.
func TestSkipHolds(t *testing.T) {
	run(t, &skipModel{numbers: 1, highest: 2}, quickLimit, "")
}

func TestSkipDeep(t *testing.T) {
	if !*deep {
		return
	}
	t.Run("ballots 0 to 3", func(t *testing.T) {
		run(t, &skipModel{numbers: 1, highest: 3}, deepLimit, "")
	})
	t.Run("two sequence numbers", func(t *testing.T) {
		run(t, &skipModel{numbers: 2, highest: 2}, deepLimit, "")
	})
}

// The search takes both ways in which an elected proposer decides ⊥ at once, and the leader's own
// ballot 1 after a restart.
func TestSkipTakesItsWays(t *testing.T) {
	const all, declared = "ballot 1 decides ⊥ for sequence number 1 at once, having heard 3 members", "ballot 2 decides ⊥ for sequence number 1 at once, having heard 2 members"
	seen := map[string]bool{}
	m := &skipModel{numbers: 1, highest: 2}
	r := visit(m, quickLimit, func(s *segment, text step) {
		if s.life == retired && strings.HasPrefix(text.String(), "1 opens") {
			seen["own ballot"] = true
		}
		seen[text.String()] = true
	})
	if !r.whole || !seen[all] || !seen[declared] || !seen["own ballot"] {
		t.Errorf("not all ways: %v", seen)
	}
}

// Each variant does what its line says.
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
			m := &skipModel{skipRules: c.rules, numbers: 1, highest: 2, ignoreAgain: true}
			if c.rules.openForgotten {
				m.highest = 1
			}
			run(t, m, quickLimit, c.want)
		})
	}
	t.Run("ballot 0 is used again, as such", func(t *testing.T) {
		run(t, &skipModel{skipRules: skipRules{startsAgain: true}, numbers: 1, highest: 2}, quickLimit, "ballot 0 is used again")
	})
}

// A promise need not say what is decided as long as it says how it voted: whoever forgets votes must
// say it.
func TestSkipNeedsNoDecisionsWhereVotesStay(t *testing.T) {
	run(t, &skipModel{skipRules: skipRules{votesOnly: true}, numbers: 1, highest: 2}, quickLimit, "")
}
