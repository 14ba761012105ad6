package merged

import (
	"strings"
	"testing"

	"github.com/braidlog/braid/internal/explore"
	"github.com/braidlog/braid/internal/testsize"
)

// most is a bound that no search comes to.
const most = 4_000_000

// A search is quick, or part of campaign models, or of campaign deep.
const (
	quick = iota
	whole
	deep
)

func sizeOf(models, all bool) int {
	switch {
	case all:
		return deep
	case models:
		return whole
	}
	return quick
}

// Members 1 to 3 of the text are 0 to 2 here.
const (
	three    = 0b0111
	four     = 0b1111
	replaced = 0b1110
)

var (
	stay   = model{voters: three, seals: 1, length: [...]uint8{2, 2, 1}, reads: true}
	joins  = model{voters: three, seals: 1, length: [...]uint8{2, 2, 1}, next: []uint8{four}, reads: true}
	leaves = model{voters: three, seals: 1, length: [...]uint8{2, 2, 1}, next: []uint8{replaced}, reads: true}
	// All members decide in the old order, so a body may have as many rows as there are members. In the new one two
	// members must be enough.
	codes = model{voters: three, seals: 1, length: [...]uint8{2, 2, 1}, bodies: 1, rows: 3, decides: 3, reads: true}
)

var back = model{voters: three, seals: 1, length: [...]uint8{3, 3, 1}, next: []uint8{four, three}, reads: true}

func (m model) longer(seals int, length [instances]uint8) model {
	m.seals, m.length = seals, length
	return m
}

// TestRulesHold: a merged log of two instances is sealed.
func TestRulesHold(t *testing.T) {
	size := sizeOf(testsize.Runs(testsize.Models), testsize.Runs(testsize.Deep))
	more := codes.longer(2, [...]uint8{3, 2, 1})
	more.bodies = 2
	hasty := back // harmless: changes have numbers
	hasty.hasty = true
	for _, c := range []struct {
		name string
		size int
		m    model
	}{
		{"members stay", quick, stay},
		{"a member joins", quick, joins},
		{"a member replaces another", quick, leaves},
		{"coded bodies", quick, codes},
		{"members stay, two seals", quick, stay.longer(2, [...]uint8{3, 3, 1})},
		{"a member joins, two seals", deep, joins.longer(2, [...]uint8{3, 3, 1})},
		{"a member replaces another, two seals", whole, leaves.longer(2, [...]uint8{3, 2, 1})},
		{"a member joins and leaves", whole, back},
		{"members change again before the second instance has followed", deep, hasty},
		{"coded bodies, two seals", whole, more},
	} {
		if c.size <= size {
			t.Run(c.name, func(t *testing.T) { explore.Run(t, c.m.space(), most, "") })
		}
	}
}

// TestVariants: each rule is needed.
func TestVariants(t *testing.T) {
	size := sizeOf(testsize.Runs(testsize.Models), testsize.Runs(testsize.Deep))
	for _, c := range []struct {
		name    string
		m       model
		variant variant
		want    string
		steps   int
		size    int
	}{
		{"W2: begins without what is before p in the second instance", stay, variant{beginsAtSeal: true},
			"P2: something is decided behind p", 8, quick},
		{"W5: a read by the second instance's lease", stay, variant{secondReads: true},
			"P4: a read misses", 12, quick},
		{"S counts while one instance has the new members", leaves, variant{uneven: true},
			"P6: 1010 cannot decide", 9, quick},
		{"S counts when the voters are the same, by different changes", back, variant{sameVoters: true},
			"P6: 0011 cannot decide", 20, whole},
		{"W7: bodies are not checked", codes, variant{unchecked: true}, "P3: 0011 cannot read body", 8, quick},
		{"W7: bodies are checked when S is proposed", codes, variant{byProposer: true},
			"P3: 0011 cannot read body", 8, quick},
	} {
		if c.size > size {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			c.m.variant = c.variant
			r := explore.Search(c.m.space(), most, nil)
			t.Logf("%d states, %d steps: %s\n%s", r.States, r.Depth, r.Wrong, strings.Join(r.Trace, "\n"))
			if !strings.HasPrefix(r.Wrong, c.want) || r.Depth != c.steps {
				t.Errorf("want %q in %d steps", c.want, c.steps)
			}
		})
	}
}
