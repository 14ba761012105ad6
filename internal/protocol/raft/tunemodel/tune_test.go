package tunemodel

import (
	"testing"

	"github.com/braidlog/braid/internal/testsize"
)

const limit = 12_000_000

// What changes: the profiles that follow each other.
var (
	longer   = []profile{{2, true}, {4, true}}
	shorter  = []profile{{4, true}, {2, true}}
	on       = []profile{{2, false}, {2, true}}
	off      = []profile{{2, true}, {2, false}}
	there    = []profile{{2, true}, {4, true}, {1, true}}
	back     = []profile{{3, true}, {1, true}, {3, true}}
	switched = []profile{{2, false}, {2, true}, {1, false}}
)

// search is one search. What takes more than a second is searched only if it is asked for.
type search struct {
	name     string
	profiles []profile
	deep     bool
	want     string
	may      budget
	change   func(c *model)
}

func (s search) run(t *testing.T, deep bool) {
	t.Run(s.name, func(t *testing.T) {
		if !deep && s.deep {
			return
		}
		c := &model{profiles: s.profiles, may: s.may}
		if s.change != nil {
			s.change(c)
		}
		run(t, c, limit, s.want)
	})
}

// The rules hold.
func TestRulesHold(t *testing.T) {
	one, two := budget{elections: 1}, budget{elections: 2}
	restart := budget{elections: 1, restarts: 1}
	snapshot := budget{elections: 1, snapshots: 1}
	all := budget{elections: 1, restarts: 1, snapshots: 1}
	for _, s := range []search{
		{name: "longer", profiles: longer, may: one},
		{name: "shorter", profiles: shorter, may: one},
		{name: "leases on", profiles: on, may: one},
		{name: "leases off", profiles: off, may: one},
		{name: "longer, a restart", profiles: longer, may: restart, deep: true},
		{name: "shorter, a restart", profiles: shorter, may: restart, deep: true},
		{name: "leases on, a restart", profiles: on, may: restart, deep: true},
		{name: "leases off, a restart", profiles: off, may: restart, deep: true},
		{name: "longer, two elections", profiles: longer, may: two, deep: true},
		{name: "shorter, two elections", profiles: shorter, may: two, deep: true},
		{name: "leases on, two elections", profiles: on, may: two, deep: true},
		{name: "leases off, two elections", profiles: off, may: two, deep: true},
		{name: "longer and shorter", profiles: there, may: one, deep: true},
		{name: "shorter and longer", profiles: back, may: one, deep: true},
		{name: "leases on, and off with a shorter one", profiles: switched, may: restart, deep: true},
		{name: "longer and shorter, a snapshot", profiles: there, may: snapshot, deep: true},
		{name: "shorter, all", profiles: shorter, may: all, deep: true},
	} {
		s.run(t, testsize.Runs(testsize.Models))
	}
}

const stale = "a leader reads by its lease"

// Each variant of the rules is found out.
func TestVariants(t *testing.T) {
	one, two := budget{elections: 1}, budget{elections: 2}
	restart := budget{elections: 1, restarts: 1}
	for _, s := range []search{
		{"longer once a majority has acknowledged", longer, false, stale, one,
			func(c *model) { c.longerByMajority = true }},
		{"longer at once", longer, false, stale, one, func(c *model) { c.longerAtOnce = true }},
		{"leases on at once", on, false, stale, restart, func(c *model) { c.longerAtOnce = true }},
		{"leases on once a majority has acknowledged", on, false, stale, restart,
			func(c *model) { c.longerByMajority = true }},
		{"a leader shortens when the profile is decided, voters at once", shorter, false, stale, one,
			func(c *model) { c.shorterDecided, c.voterShorter = true, true }},
		{"a voter shortens at an undecided profile", shorter, false, stale, two,
			func(c *model) { c.voterShorter = true }},
		{"a voter lengthens at a decided profile", longer, false, stale, one,
			func(c *model) { c.voterDecided = true }},
		{"a laggard counts", there, false, stale, budget{elections: 1, snapshots: 1},
			func(c *model) { c.laggardCounted = true }},
		{"one that starts knows leases by the decided profile", on, false, stale, restart,
			func(c *model) { c.startsByCommit = true }},
	} {
		s.run(t, testsize.Runs(testsize.Models))
	}
}
