package fencemodel

import (
	"testing"

	"github.com/braidlog/braid/internal/testsize"
)

// turned are three members that turn lanes off, on, and off again. The first entry of the lane is from before that, the
// second from when it opened again.
func turned() scenario {
	all := uint8(0b0111)
	return scenario{
		name: "off, on and off",
		configs: []config{
			{voters: all, next: []uint8{1}},
			{voters: all, off: true, closes: true, next: []uint8{2}},
			{voters: all, next: []uint8{3}},
			{voters: all, off: true, closes: true},
		},
		entries: 2, second: 2, terms: 2, length: 10, lazy: true, absent: 0b1000,
		mirror: [2]int{1, 2}, mirrored: []uint8{0, 1, 2, 3}, mayMirror: true,
	}
}

// Lanes are turned off behind a fence, as voters change, and nothing of them is appended until they are on again. Then
// a lane begins behind every number that it had. With one leader and a crash, and with every copy at every moment.
func TestLanesAreTurnedOff(t *testing.T) {
	crash := turned()
	crash.crashes, crash.terms = 1, 1
	run(t, &model{scenario: crash, rules: separate}, 2_000_000, "")
	copies := turned()
	copies.lazy, copies.terms, copies.length = false, 1, 8
	run(t, &model{scenario: copies, rules: separate}, 2_000_000, "")
}

// With two leaders, one after the other or both at once, who stop or continue at any point, and a crash and a new
// incarnation of any member.
func TestLanesAreTurnedOffByTwoLeaders(t *testing.T) {
	testsize.Only(t, testsize.Models)
	for first, crashes := range []uint8{1, 0} {
		s := turned()
		s.first, s.crashes = first, crashes
		run(t, &model{scenario: s, rules: separate}, 5_000_000, "")
	}
}

// What is left out of the rules is found.
func TestVariantsOfTurningLanesOff(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules rules
		want  string
	}{
		{"no fence where lanes are turned off", rules{skipOff: 1}, "lost"},
		{"no fence where they are turned off again", rules{skipOff: 3}, "lost"},
		{"lanes open while they are off", rules{openOff: true}, "lost"},
		{"numbers used again", rules{sameNumbers: true}, "lost"},
		{"a lane that opens again is held as the one that closed", rules{sameLane: true}, "lost"},
		{"members take messages of fenced generations", rules{ackFenced: true}, "lost"},
		{"a fenced owner goes on counting", rules{ownerUnfenced: true}, "lost"},
		{"the profile does not wait for signals", rules{uncovered: true}, "lost"},
		{"fewer answers than a quorum", rules{fewAnswers: true}, "lost"},
		{"a fence does not survive a crash", rules{forget: true}, "lost"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &model{scenario: turned(), rules: c.rules}
			m.ignoreOrder, m.ignoreHolders = true, c.want == "lost"
			if c.rules.forget {
				m.crashes = 1
			}
			run(t, m, 3_000_000, c.want)
		})
	}
}
