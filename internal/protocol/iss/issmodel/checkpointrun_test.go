package issmodel

import (
	"testing"

	"github.com/braidlog/braid/internal/testsize"
)

func majorities(n int) *checkpointModel {
	m := &checkpointModel{members: n, highest: 2}
	m.phase1, m.phase2 = m.most(), m.most()
	return m
}

// oneVote is a cluster in which one vote decides, so promises of all members are needed.
func oneVote() *checkpointModel {
	return &checkpointModel{members: 3, phase1: 3, phase2: 1, highest: 2}
}

func TestCheckpointHolds(t *testing.T) {
	testsize.Long(t)
	t.Run("majorities", func(t *testing.T) { run(t, majorities(3), quickLimit, "") })
	t.Run("one vote decides", func(t *testing.T) { run(t, oneVote(), quickLimit, "") })
}

func TestCheckpointDeep(t *testing.T) {
	if !testsize.Runs(testsize.Deep) {
		return
	}
	t.Run("three members, ballots 0 to 3", func(t *testing.T) {
		m := majorities(3)
		m.highest = 3
		run(t, m, deepLimit, "")
	})
	t.Run("four members", func(t *testing.T) { run(t, majorities(4), deepLimit, "") })
	t.Run("four members, two votes decide", func(t *testing.T) {
		m := majorities(4)
		m.phase2 = 2
		run(t, m, deepLimit, "")
	})
}

// Each variant has the result in its line. If a wrong decision is expected, the search continues after a state from
// which it can follow.
func TestCheckpointVariants(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules checkpointRules
		want  string
	}{
		{"votes are given up when the decision is known", checkpointRules{onDelivery: true}, "lost"},
		{"votes are given up when the decision is known, and then", checkpointRules{onDelivery: true}, "disagreement"},
		{"a checkpoint is sent before it is durable", checkpointRules{early: true}, "lost"},
		{"a checkpoint is sent before it is durable, and then", checkpointRules{early: true}, "disagreement"},
		{"a member without the decisions frees too", checkpointRules{withoutOwn: true}, "disagreement"},
		{"who has freed promises as if the epoch were new", checkpointRules{emptyPromise: true}, "disagreement"},
		{"the same, at a member's own checkpoint", checkpointRules{emptyPromise: true, onOwn: true}, "disagreement"},
		{"who has closed the epoch does not answer", checkpointRules{silent: true}, "stuck"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := majorities(3)
			m.checkpointRules, m.ignoreLost = c.rules, c.want == "disagreement"
			run(t, m, quickLimit, c.want)
		})
	}
	t.Run("a small quorum of checkpoints is stable", func(t *testing.T) {
		m := oneVote()
		m.few = true
		run(t, m, quickLimit, "lost")
	})
}

// These rules are also safe. A member may free its votes at its own checkpoint, as long as it answers with the
// decisions. A member without the decisions may free when the epoch is stable, if it records that, and no longer
// takes part in the epoch.
func TestCheckpointAlternatives(t *testing.T) {
	testsize.Long(t)
	for _, c := range []struct {
		name  string
		rules checkpointRules
	}{
		{"at its own checkpoint", checkpointRules{onOwn: true}},
		{"without the decisions, but marked", checkpointRules{withoutOwn: true, marked: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := majorities(3)
			m.checkpointRules = c.rules
			run(t, m, quickLimit, "")
		})
	}
}
