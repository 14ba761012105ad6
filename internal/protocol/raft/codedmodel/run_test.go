package codedmodel

import (
	"flag"
	"runtime/debug"
	"testing"

	"github.com/braidlog/braid/internal/explore"
	"github.com/braidlog/braid/internal/testsize"
)

// TestMain keeps a deep search small.
func TestMain(m *testing.M) {
	flag.Parse()
	if testsize.Runs(testsize.Models) {
		debug.SetMemoryLimit(2 << 30)
	}
	m.Run()
}

// most is a bound that no search comes to.
const most = 20_000_000

var (
	three = setting{name: "3, k=2, three terms", voters: 0b0111, k: 2, terms: 3, length: 3, puts: 1, crashes: 1}
	two   = setting{name: "3, k=2, two bodies", voters: 0b0111, k: 2, terms: 2, length: 4, puts: 2, crashes: 1}
	power = setting{name: "3, k=2, all crash, snapshots, trims", voters: 0b0111, k: 2, terms: 2, length: 3, puts: 1,
		crashes: 1, power: true, trims: true}
	trims = setting{name: "3, k=2, snapshots, trims, three terms", voters: 0b0111, k: 2, terms: 3, length: 3,
		puts: 1, trims: true}
	shrinks = setting{name: "4→3, k=2", voters: 0b1111, next: []uint8{0b0111}, k: 2, terms: 2, length: 3,
		puts: 1, changes: 1}
	grows = setting{name: "3→4, k=2", voters: 0b0111, next: []uint8{0b1111}, k: 2, terms: 2, length: 3, puts: 1,
		crashes: 1, changes: 1, plain: true}
	joins = setting{name: "3→4, k=2, snapshots, trims, one term", voters: 0b0111, next: []uint8{0b1111}, k: 2, terms: 1,
		length: 3, puts: 1, crashes: 1, changes: 1, trims: true, plain: true}
	copies = setting{name: "4→3, k=3, whole copies, trims", voters: 0b1111, next: []uint8{0b0111}, k: 3, terms: 1,
		length: 4, puts: 1, crashes: 1, changes: 1, trims: true}
)

// TestTheRulesHold: nothing is lost.
func TestTheRulesHold(t *testing.T) {
	searched := []setting{power, two}
	if testsize.Runs(testsize.Models) {
		searched = append(searched, three, joins, trims, shrinks, grows, copies)
	}
	for _, s := range searched {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			explore.Run(t, (&model{setting: s}).space(), most, "")
		})
	}
}

// TestVariants: each rule is needed.
func TestVariants(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules rules
		setting
		want string
	}{
		{"trims by what is applied", rules{trimByApplied: true}, copies, "lost"},
		{"who is to hold bodies whole trims", rules{trimWhole: true}, copies, "lost"},
		{"the paper's prefix", rules{paperPrefix: true}, two, "lost"},
		{"any majority commits", rules{naive: true}, three, "lost"},
		{"one answer fewer", rules{fewAnswers: true}, three, "cut"},
		{"a row replaces a whole copy", rules{downgrade: true}, three, "lost"},
		{"members change freely", rules{changeAny: true}, shrinks, "lost"},
		{"a configuration after coded entries", rules{afterCoded: true}, grows, "lost"},
		{"trims without counting", rules{trimAny: true}, power, "lost"},
		{"trims count who acknowledged", rules{trimAcked: true}, trims, "lost"},
		{"trims count what no disk has", rules{trimMemory: true}, power, "lost"},
		{"acknowledgements of old terms", rules{oldAcks: true}, three, "lost"},
		{"the leader's disk is not waited for", rules{memory: true}, three, "lost"},
		{"who has compacted an entry holds nothing", rules{forgetful: true}, power, "cut"},
		{"a snapshot leaves the term", rules{keepTerm: true}, power, "cut"},
	} {
		if c.setting.k == 3 && !testsize.Runs(testsize.Models) {
			continue // what goes wrong takes 20 steps
		}
		t.Run(c.name+": "+c.setting.name, func(t *testing.T) {
			t.Parallel()
			explore.Run(t, (&model{setting: c.setting, rules: c.rules}).space(), most, c.want)
		})
	}
}

// TestOmissions: this rule is not needed alongside the check of who holds bodies.
func TestOmissions(t *testing.T) {
	if testsize.Runs(testsize.Models) {
		explore.Run(t, (&model{setting: grows, rules: rules{inferNone: true}}).space(), most, "")
	}
}
