package epaxosmodel

import (
	"strings"
	"testing"

	"github.com/braidlog/braid/internal/testsize"
)

// Each variant has the result in its line. Most are found among three members, some need five.
func TestVariants(t *testing.T) {
	for _, c := range []struct {
		name    string
		rules   rules
		members int
		want    string
	}{
		{"the ballot of what is accepted is the last promise's", rules{oneBallot: true}, 3, "disagreement"},
		{"unequal answers are merged", rules{merge: true}, 3, "disagreement"},
		{"unequal answers are merged, by five", rules{merge: true}, 5, "disagreement"},
		{"a recovery drops dependencies", rules{dropDeps: true}, 3, "disagreement"},
		{"one of five and the proposer are too few", rules{fewer: 1}, 5, "invisible"},
		{"the proposer alone is too few", rules{fewer: 1}, 3, "invisible"},
		{"nobody asks for contradictions", rules{unchecked: true}, 5, "invisible"},
		{"only what is decided contradicts", rules{blindToOpen: true}, 5, "invisible"},
		{"a fast decision is told before it is durable", rules{early: true}, 3, "disagreement"},
		{"the same, and the proposer goes on after a crash", rules{early: true, resumes: true}, 3, "disagreement"},
		{"the same, and its answer counts like others", rules{early: true, anyCoord: true}, 3, "stuck"},
		{"the proposer's answer counts like others", rules{anyCoord: true}, 3, "stuck"},
		{"the fast path after another promise", rules{lateFast: true}, 3, "disagreement"},
		{"who waits learns nothing from who did not answer", rules{inexact: true}, 5, "stuck"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := five()
			if c.members == 3 {
				m = three(2, 2)
				m.crashes = 2
			}
			m.rules = c.rules
			m.runWalks(t, 10_000, c.want)
		})
	}
}

// These rules are also safe. A no-op needs no dependencies, and may keep them. It may or may not be a dependency of
// others: a member that validates, or accepts, knows the command from then on. A proposer that restarts may continue
// with ballot 0, if its decisions and acceptances are durable before they are sent. A recovery may ask for
// contradictions although too few have the first dependencies: an undecided command may become decided.
func TestAlternatives(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules rules
	}{
		{"a no-op keeps dependencies", rules{keepDeps: true}},
		{"a decided no-op is no dependency", rules{skipNoops: true}},
		{"no no-op is a dependency", rules{noopInvisible: true}},
		{"a proposer goes on after a crash", rules{resumes: true}},
		{"one that has the first dependencies is enough", rules{lenient: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, m := range []*model{five(), three(2, 2)} {
				m.rules = c.rules
				m.runWalks(t, testsize.Pick(testsize.Deep, 300, 300, 100_000), "")
			}
		})
	}
}

// play takes the given steps, and judges the last state. A crash without an effect is skipped.
func (m *model) play(t *testing.T, story ...string) string {
	t.Helper()
	var now cluster
	for _, line := range story {
		var next *cluster
		var other []string
		m.each(&now, func(s step, n *cluster) {
			other = append(other, s.String())
			if s.String() == line {
				next = n
			}
		})
		if next == nil && strings.Contains(line, "crashes") {
			continue
		}
		if next == nil {
			t.Fatalf("no step %q, but\n%s", line, strings.Join(other, "\n"))
		}
		now = *next
		if what := m.wrong(&now); what != "" {
			return what
		}
	}
	return m.judge(&now)
}

// compare plays steps under the rules, where no error may be found, and under a variant.
func compare(t *testing.T, variant rules, want string, story ...string) {
	t.Helper()
	m := five()
	if what := m.play(t, story...); what != "" {
		t.Errorf("under the rules: %s", what)
	}
	m.rules = variant
	if what := m.play(t, story...); !strings.HasPrefix(what, want) || want == "" {
		t.Errorf("want %q, found %q", want, what)
	}
}

// Two members each try to recover one of two commands that interfere, whose proposers are dead. Each finds that the
// other command contradicts, and waits until it is decided.
var deadlock = []string{
	"1 proposes A", "2 proposes B", "3 preaccepts A", "4 preaccepts B",
	"3 begins to recover A under 1", "4 promises 1 for A", "5 promises 1 for A",
	"3 recovers A under 1 with the answers of 3 4 5",
	"4 begins to recover B under 1", "3 promises 1 for B", "5 promises 1 for B",
	"4 recovers B under 1 with the answers of 3 4 5",
	"4 answers Validate of A under 1", "5 answers Validate of A under 1", "3 answers Validate of B under 1",
	"5 answers Validate of B under 1", "3 weighs what contradicts A under 1", "4 weighs what contradicts B under 1",
}

func TestDeadlock(t *testing.T) {
	compare(t, rules{inexact: true}, "stuck", deadlock...)
	compare(t, rules{inexact: true, patient: true}, "stuck", deadlock...)
}

// The proposer of B answers the recovery of A, and dies. Without its answer B waits for A, and A for B.
func TestWaitingIsTold(t *testing.T) {
	compare(t, rules{patient: true}, "stuck",
		"1 proposes A", "2 proposes B", "3 preaccepts A", "4 preaccepts B", "5 preaccepts B",
		"3 begins to recover A under 1", "2 promises 1 for A", "4 promises 1 for A",
		"3 recovers A under 1 with the answers of 2 3 4",
		"2 answers Validate of A under 1", "4 answers Validate of A under 1", "3 weighs what contradicts A under 1")
}

// Members that validated A crash, and then preaccept C, on which A does not depend.
func TestValidateIsDurable(t *testing.T) {
	compare(t, rules{forgetful: true}, "invisible",
		"1 proposes A", "2 preaccepts A", "2 begins to recover A under 1", "3 promises 1 for A", "4 promises 1 for A",
		"2 recovers A under 1 with the answers of 2 3 4", "3 answers Validate of A under 1",
		"4 answers Validate of A under 1",
		"2 weighs what contradicts A under 1", "3 crashes and starts again", "4 crashes and starts again",
		"3 proposes C", "4 preaccepts C", "5 preaccepts C", "3 decides C on the fast path",
		"3 accepts A under 1", "4 accepts A under 1")
}
