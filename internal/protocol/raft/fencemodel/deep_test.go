package fencemodel

import (
	"testing"

	"github.com/braidlog/braid/internal/testsize"
)

const deepLimit = 150_000_000

// Searches that take a minute or more each, in campaign deep.
func TestDeep(t *testing.T) {
	if !testsize.Runs(testsize.Deep) {
		return
	}
	for _, s := range scenarios() {
		t.Run(s.name+", separate", func(t *testing.T) {
			run(t, &model{scenario: s, rules: separate}, deepLimit, "")
		})
		t.Run(s.name+", merged", func(t *testing.T) {
			run(t, &model{scenario: s, rules: merged}, deepLimit, "")
		})
	}
	s := named("owner and leader leaves")
	s.gens = 1
	t.Run("a crash and a new life", func(t *testing.T) {
		s := named("owner and leader leaves")
		s.crashes = 1
		run(t, &model{scenario: s, rules: merged}, deepLimit, "")
	})
	t.Run("renewed", func(t *testing.T) {
		run(t, &model{scenario: s, rules: merged}, deepLimit, "")
	})
}

// What may be left out without losing anything that was accepted, in changes like these: what is
// strictly promised ("held", "below") may not hold then.
func TestDeepOmissions(t *testing.T) {
	if !testsize.Runs(testsize.Deep) {
		return
	}
	for _, c := range []struct {
		name     string
		scenario string
		rules    rules
		strict   bool
	}{
		{"acks of earlier generations count", "owner leaves", rules{countOld: true}, true},
		{"the next configuration answers", "owner leaves", rules{newAnswers: true}, true},
		{"the next configuration answers, joint", "another is replaced", rules{newAnswers: true}, true},
		{"no fence where one joins", "owner leaves", rules{skipAdd: true}, false},
		{"no fence where one leaves that owns no lane", "another leaves", rules{skipRemove: true}, false},
		{"no fence for entering a joint configuration", "another is replaced", rules{skipJoin: true}, false},
		{"no fence for leaving it", "another is replaced", rules{skipLeave: true}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.rules.entryIsGeneration = true
			m := &model{scenario: named(c.scenario), rules: c.rules}
			m.ignoreOrder, m.ignoreHolders = !c.strict, !c.strict
			run(t, m, deepLimit, "")
		})
	}
}
