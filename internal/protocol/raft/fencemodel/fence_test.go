package fencemodel

import (
	"testing"

	"github.com/braidlog/braid/internal/testsize"
)

// scenarios are the changes of docs/internals/lcr.md. Member 1 owns the lane where nothing else is said.
func scenarios() []scenario {
	grow := config{voters: 0b0111, next: []uint8{1}}
	four := config{voters: 0b1111, next: []uint8{2}}
	all := []scenario{
		{name: "owner and leader leaves", configs: []config{grow, four, {voters: 0b1110, closes: true}}, mayMirror: true},
		{name: "owner leaves", configs: []config{grow, four, {voters: 0b1110, closes: true}}, first: 1},
		{name: "another leaves", configs: []config{grow, four, {voters: 0b1011}}},
		{name: "leader leaves", configs: []config{grow, four, {voters: 0b1101}}, first: 1},
		{name: "another is replaced", configs: []config{grow, {voters: 0b1011, outgoing: 0b0111, next: []uint8{2}},
			{voters: 0b1011}}},
		{name: "owner is replaced", configs: []config{grow, {voters: 0b1110, outgoing: 0b0111, next: []uint8{2}},
			{voters: 0b1110, closes: true}}, mayMirror: true},
		{name: "a learner owns", configs: []config{grow, four, {voters: 0b1110}}, owner: 3, mayMirror: true},
	}
	for i := range all {
		s := &all[i]
		s.entries, s.terms, s.length, s.lazy = 1, 2, 7, true
		s.mirror, s.mirrored = [2]int{1, 2}, []uint8{0, 1, 2}
	}
	return all
}

func named(name string) scenario {
	for _, s := range scenarios() {
		if s.name == name {
			return s
		}
	}
	panic(name)
}

// separate is the design with generations of their own; merged has configuration entries that are
// generations.
var (
	separate = rules{}
	merged   = rules{entryIsGeneration: true}
)

// The rules hold with two leaders, one after the other or both at once, who stop or continue at any
// point, and with any other member that stops.
func TestFenceHolds(t *testing.T) {
	testsize.Long(t)
	for _, c := range []struct {
		scenario string
		rules    rules
	}{
		{"owner and leader leaves", merged},
		{"owner is replaced", merged},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			t.Parallel()
			run(t, &model{scenario: named(c.scenario), rules: c.rules}, 2_000_000, "")
		})
	}
}

// One leader, and every copy at every moment, with a crash and a new incarnation of any member. What the
// lazy model leaves out is in here.
func TestFenceHoldsWithEveryCopy(t *testing.T) {
	s := named("owner and leader leaves")
	s.lazy, s.terms, s.crashes, s.length = false, 1, 1, 6
	run(t, &model{scenario: s, rules: merged}, 2_000_000, "")
}

// Each variant does what its line says. "lost" is looked for directly, whatever else is wrong on the
// way.
func TestVariants(t *testing.T) {
	for _, c := range []struct {
		name     string
		scenario string
		rules    rules
		want     string
	}{
		{"members take messages of fenced generations", "owner is replaced", rules{ackFenced: true}, "lost"},
		{"a fenced owner goes on counting", "owner is replaced", rules{ownerUnfenced: true}, "lost"},
		{"the configuration does not wait for signals", "owner is replaced", rules{uncovered: true}, "lost"},
		{"fewer answers than a quorum", "owner is replaced", rules{fewAnswers: true}, "lost"},
		{"a fence does not survive a crash", "owner is replaced", rules{forget: true}, "lost"},
		{"no fence at two changes", "leader leaves", rules{skipAdd: true, skipRemove: true}, "lost"},
		{"no fence at a joint change", "another is replaced", rules{skipJoin: true, skipLeave: true}, "lost"},
		{"no fence where the owner leaves", "owner leaves", rules{skipRemove: true}, "lost"},
		{"the log counts as the disk", "a learner owns", rules{ackFromLog: true}, "lost"},
		{"a generation drops what was not drained", "owner leaves", rules{dropOnGeneration: true}, "lost"},
		{"the owner counts with its old configuration", "owner leaves", rules{countOldSets: true}, "held"},
		{"a generation is adopted in the log", "owner is replaced", rules{adoptInLog: true}, "held"},
		{"a generation is adopted in the log, and lost", "owner leaves", rules{adoptInLog: true, entryIsGeneration: true},
			"lost"},
		{"answers outlive a new generation", "owner leaves", rules{keepAnswers: true}, "below"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &model{scenario: named(c.scenario), rules: c.rules}
			m.ignoreOrder, m.ignoreHolders = c.want != "below", c.want == "lost"
			if c.rules.forget {
				m.crashes = 1
			}
			if c.rules.adoptInLog || c.rules.dropOnGeneration || c.rules.keepAnswers {
				m.gens = 1
			}
			run(t, m, 2_000_000, c.want)
		})
	}
}

// Where no one continues after a fence that was not finished, members refuse the owner forever.
func TestFenceIsFinished(t *testing.T) {
	s := named("another leaves")
	s.terms, s.length, s.gens = 1, 5, 0
	for name, none := range map[string]bool{"somebody": false, "nobody": true} {
		t.Run(name, func(t *testing.T) {
			m := &model{scenario: s, rules: rules{entryIsGeneration: true, noSuccessor: none}}
			m.stuck = true
			run(t, m, 2_000_000, map[bool]string{true: "stuck"}[none])
		})
	}
}

// Strictly counted by the configuration in the leader's log, which may not be committed, an accepted
// entry may be on too few disks for a while. So that is not what is promised.
func TestHoldersAreOfTheCommittedConfiguration(t *testing.T) {
	m := &model{scenario: named("owner leaves"), rules: merged}
	m.inForce = true
	run(t, m, 2_000_000, "held")
}
