package switchmodel

import (
	"strings"
	"testing"
	"time"

	"github.com/braidlog/braid/internal/explore"
	"github.com/braidlog/braid/internal/testsize"
)

// most is a bound that no search comes to.
const most = 16_000_000

// A search is quick, or part of campaign models, or of campaign deep.
const (
	quick = iota
	whole
	deep
)

func size(models, all bool) int {
	switch {
	case all:
		return deep
	case models:
		return whole
	}
	return quick
}

// search is one search: what it must find, and after how many steps. "" expects nothing wrong in any state.
type search struct {
	name   string
	size   int
	want   string
	steps  int
	change func(c *model)
}

func run(t *testing.T, size int, searches []search) {
	for _, s := range searches {
		if s.size > size {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			// Instances of two entries and of one; member 0 leads first, and another is elected once.
			c := model{terms: [...]uint8{2, 2, 1}, length: [...]uint8{2, 1, 0}, crashes: 1, elections: 1, firsts: 2}
			s.change(&c)
			s.check(t, c.space())
		})
	}
}

func (s *search) check(t *testing.T, space explore.Space[cluster, step]) {
	began := time.Now()
	r := explore.Search(space, most, nil)
	t.Logf("%d states, %d steps, %s", r.States, r.Depth, time.Since(began).Truncate(10*time.Millisecond))
	switch {
	case s.want == "" && r.Wrong == "" && r.Whole:
	case s.want == "" && r.Wrong == "":
		t.Errorf("more than %d states", most)
	case s.want == "" || !strings.HasPrefix(r.Wrong, s.want) || s.steps != r.Depth:
		t.Errorf("want %q in %d steps, found %q\n%s", s.want, s.steps, r.Wrong, strings.Join(r.Trace, "\n"))
	}
}

func (c *model) plain()      { c.crashes, c.firsts = 0, 1 }
func (c *model) threeTerms() { c.terms[0], c.elections = 3, 3 }

// chain is two switches in a row; each instance has one entry unless a search says more.
func (c *model) chain() { c.switches, c.length, c.crashes = 2, [...]uint8{1, 1, 1}, 1 }

// old lets snapshots of any place come at any time.
func (c *model) old() { c.snapshots, c.olds = true, true }

// TestRulesHold: one switch.
func TestRulesHold(t *testing.T) {
	run(t, size(testsize.Runs(testsize.Models), testsize.Runs(testsize.Deep)), []search{
		{"no crash", quick, "", 0, func(c *model) { c.crashes = 0 }},
		{"one crash", whole, "", 0, func(*model) {}},
		{"snapshots, logs given up", whole, "", 0, func(c *model) { c.snapshots = true }},
		{"members change behind S", whole, "", 0, func(c *model) { c.joints = true }},
		{"the first record together with S", quick, "", 0,
			func(c *model) { c.together, c.repeats, c.crashes, c.length[0] = true, true, 2, 1 }},
		{"the first record together with S, snapshots", whole, "", 0,
			func(c *model) { c.together, c.repeats, c.snapshots = true, true, true }},
		{"the first record together with S, leases", deep, "", 0,
			func(c *model) { c.together, c.leases = true, true }},
		{"the first record together with S, read index", deep, "", 0,
			func(c *model) { c.together, c.reads = true, true }},
		{"leases", whole, "", 0, func(c *model) { c.leases = true }},
		{"read index", whole, "", 0, func(c *model) { c.reads = true }},
		{"two crashes", whole, "", 0, func(c *model) { c.crashes = 2 }},
		{"longer new log", deep, "", 0, func(c *model) { c.length[1], c.repeats = 2, true }},
		{"proposals are repeated", whole, "", 0, func(c *model) { c.repeats, c.crashes, c.length[1] = true, 0, 2 }},
		{"lanes", whole, "", 0, func(c *model) { c.plain(); c.lanes, c.elections = true, 0 }},
		{"read index, members count themselves", deep, "", 0,
			func(c *model) { c.plain(); c.reads, c.witnesses = true, true }},
		{"lanes, an election", deep, "", 0, func(c *model) { c.plain(); c.lanes = true }},
		{"leases, longer log", deep, "", 0, func(c *model) { c.leases, c.length[0] = true, 3 }},
		{"leases, two elections", deep, "", 0, func(c *model) { c.leases, c.elections = true, 2 }},
		{"leases, three terms", deep, "", 0, func(c *model) { c.threeTerms(); c.leases = true }},
		{"read index, two elections", deep, "", 0, func(c *model) { c.reads, c.elections = true, 2 }},
		{"snapshots, longer log", deep, "", 0, func(c *model) { c.snapshots, c.length[0] = true, 3 }},
		{"snapshots, two elections, two crashes", deep, "", 0,
			func(c *model) { c.snapshots, c.elections, c.crashes = true, 2, 2 }},
		{"snapshots, three terms", deep, "", 0, func(c *model) { c.threeTerms(); c.snapshots = true }},
		{"snapshots, three terms in the new instance", deep, "", 0,
			func(c *model) { c.snapshots, c.repeats, c.elections, c.terms[1] = true, true, 3, 3 }},
	})
}

// TestTwoSwitches: an instance that was begun is sealed itself, while members are in any of the three.
func TestTwoSwitches(t *testing.T) {
	run(t, size(testsize.Runs(testsize.Models), testsize.Runs(testsize.Deep)), []search{
		{"a crash", quick, "", 0, (*model).chain},
		{"old snapshots", quick, "", 0, func(c *model) { c.chain(); c.old(); c.crashes = 0 }},
		{"an old seal", whole, "", 0, func(c *model) { c.stales = true }},
		{"two elections", whole, "", 0, func(c *model) { c.chain(); c.elections = 2 }},
		{"longer first log", whole, "", 0, func(c *model) { c.chain(); c.length[0] = 2 }},
		{"longer second log", deep, "", 0, func(c *model) { c.chain(); c.length[1] = 2 }},
		{"old snapshots, two elections, a crash", whole, "", 0, func(c *model) { c.chain(); c.old(); c.elections = 2 }},
		{"read index", whole, "", 0, func(c *model) { c.chain(); c.reads = true }},
		{"leases", whole, "", 0, func(c *model) { c.chain(); c.leases = true }},
		{"first records together with S, old snapshots, two crashes", deep, "", 0,
			func(c *model) { c.chain(); c.old(); c.together, c.repeats, c.crashes = true, true, 2 }},
		{"read index, old snapshots, two elections", deep, "", 0,
			func(c *model) { c.chain(); c.old(); c.reads, c.crashes, c.elections = true, 0, 2 }},
		{"longer logs, a crash", deep, "", 0, func(c *model) { c.chain(); c.length = [...]uint8{2, 2, 1} }},
		{"longer logs, old snapshots", deep, "", 0,
			func(c *model) { c.chain(); c.old(); c.length, c.crashes = [...]uint8{2, 2, 1}, 0 }},
	})
}

// built is the switch without a first leader, as the code has it.
func (c *model) built() {
	c.elects, c.closes, c.snapshots, c.firsts, c.elections = true, true, true, 1, 2
}

// TestWithoutAFirstLeader: a new instance elects its first leader as any other one.
func TestWithoutAFirstLeader(t *testing.T) {
	run(t, size(testsize.Runs(testsize.Models), testsize.Runs(testsize.Deep)), []search{
		{"no crash", quick, "", 0, func(c *model) { c.built(); c.crashes = 0 }},
		{"one crash", whole, "", 0, (*model).built},
		{"three elections", whole, "", 0, func(c *model) { c.built(); c.crashes, c.elections = 0, 3 }},
		{"two crashes", deep, "", 0, func(c *model) { c.built(); c.crashes = 2 }},
		{"leases", whole, "", 0, func(c *model) { c.built(); c.leases, c.crashes = true, 0 }},
		{"read index", whole, "", 0, func(c *model) { c.built(); c.reads, c.crashes = true, 0 }},
		{"members change behind S", whole, "", 0, func(c *model) { c.built(); c.joints, c.crashes = true, 0 }},
		{"two switches", whole, "", 0,
			func(c *model) { c.built(); c.switches, c.length, c.crashes = 2, [...]uint8{1, 2, 1}, 0 }},
		{"two switches, a crash", deep, "", 0,
			func(c *model) { c.built(); c.switches, c.length = 2, [...]uint8{1, 2, 1} }},
		{"leases, a crash", deep, "", 0, func(c *model) { c.built(); c.leases = true }},
		{"read index, a crash", deep, "", 0, func(c *model) { c.built(); c.reads = true }},
		{"three elections, a crash", deep, "", 0, func(c *model) { c.built(); c.elections = 3 }},
		{"begun is forgotten", deep, "", 0, func(c *model) { c.built(); c.forgets = true }},
	})
}

const (
	p1 = "P1: a seal of another version counts"
	p2 = "P2: two entries at a place"
	p3 = "P3: "
	p4 = "P4: "
	p5 = "P5: a command took effect twice"
	p7 = "P7: two leaders in a term"
)

// TestVariants: each rule is needed.
func TestVariants(t *testing.T) {
	run(t, size(testsize.Runs(testsize.Models), testsize.Runs(testsize.Deep)), []search{
		{"W1: repeated under another number", quick, p5, 11,
			func(c *model) { c.repeats, c.crashes, c.length[1], c.renumbers = true, 0, 2, true }},
		{"W2: begins when S is appended", quick, p7, 8, func(c *model) { c.crashes, c.beginAppended = 2, true }},
		{"W2: tells that S is decided before it begins", quick, p4, 15,
			func(c *model) { c.plain(); c.leases, c.tellsFirst = true, true }},
		{"W3: m speaks before its first record is durable", quick, p2, 14,
			func(c *model) { c.crashes, c.bornTwice, c.repeats, c.length[0] = 2, true, true, 1 }},
		{"W3: begins with the newest members", quick, p3, 16,
			func(c *model) { c.plain(); c.joints, c.membersOfTail = true, true }},
		{"W4: old answers, logs given up", quick, p3, 10, func(c *model) { c.snapshots, c.oldAnswers = true, true }},
		{"W5: reads by its lease when it has begun", quick, p4, 11,
			func(c *model) { c.plain(); c.leases, c.sealedReads = true, true }},
		{"W6: born without the vote for m", quick, p7, 9, func(c *model) { c.crashes, c.unborn = 2, true }},
		{"W6: m leads after a restart", quick, p2, 14,
			func(c *model) { c.leadsAgain, c.repeats, c.length[0] = true, true, 1 }},
		{"W6: m leads after a restart, by the record with S", quick, p2, 14,
			func(c *model) { c.together, c.ownAgain, c.repeats, c.length[0] = true, true, true, 1 }},
		{"W3: the record with S counts for another S", whole, p2, 20,
			func(c *model) { c.together, c.ownOfAny, c.repeats = true, true, true }},
		{"W7: lanes are not fenced", quick, p3, 7, func(c *model) { c.plain(); c.lanes, c.unfenced = true, true }},
		{"W8: what is behind S is cut early", whole, p3, 14,
			func(c *model) { c.length[0], c.crashes, c.firsts, c.cutsTail = 3, 2, 1, true }},
		{"W9: Sealed of a member that has not begun", quick, p2, 8,
			func(c *model) { c.crashes, c.unsureProof = 2, true }},
		{"W9: Sealed without what is before S", quick, p2, 10, func(c *model) { c.crashes, c.bareProof = 2, true }},
		{"W9: S is taken, and begun later", whole, p3, 16,
			func(c *model) { c.threeTerms(); c.firsts, c.takesFirst = 1, true }},
		{"a seal of another version counts", quick, p1, 10, func(c *model) { c.stales, c.staleCounts = true, true }},
		{"snapshots are compared by index", quick, p3, 6, func(c *model) { c.old(); c.byIndex = true }},
	})
}

// TestVariantsWithoutAFirstLeader: the rules that are left are needed too.
func TestVariantsWithoutAFirstLeader(t *testing.T) {
	run(t, size(testsize.Runs(testsize.Models), testsize.Runs(testsize.Deep)), []search{
		{"W2: begins when S is appended", quick, p2, 8, func(c *model) { c.built(); c.beginAppended = true }},
		{"W2: tells that S is decided before reads stop", quick, p4, 15,
			func(c *model) { c.built(); c.crashes = 0; c.leases, c.tellsFirst = true, true }},
		{"W3: votes before the first record is durable", quick, p7, 15,
			func(c *model) { c.built(); c.bornTwice = true }},
		{"W3: begins with the newest members", quick, p7, 13,
			func(c *model) { c.built(); c.crashes = 0; c.joints, c.membersOfTail = true, true }},
		{"W4: old answers, logs given up", quick, p3, 11, func(c *model) { c.built(); c.oldAnswers = true }},
		{"W5: reads by its lease when it has begun", quick, p4, 14,
			func(c *model) { c.built(); c.crashes = 0; c.leases, c.sealedReads = true, true }},
		{"m leads at once, and no member has voted for it", quick, p7, 10,
			func(c *model) { c.built(); c.crashes, c.leadsUnvoted = 0, true }},
		{"snapshots are compared by index", quick, p3, 7, func(c *model) { c.built(); c.old(); c.byIndex = true }},
	})
}

// TestHarmless: these variants alone break nothing that the model sees. Other rules rely on them: logs are given up,
// and there are several instances.
func TestHarmless(t *testing.T) {
	run(t, size(testsize.Runs(testsize.Models), testsize.Runs(testsize.Deep)), []search{
		{"m speaks before the record with S is durable", deep, "", 0,
			func(c *model) { c.together, c.ownUnsynced, c.repeats, c.snapshots = true, true, true, true }},
		{"m speaks before the record with S is durable, two crashes", deep, "", 0,
			func(c *model) { c.together, c.ownUnsynced, c.repeats, c.crashes = true, true, true, 2 }},
		{"m speaks before the record with S is durable, read index", deep, "", 0,
			func(c *model) { c.together, c.ownUnsynced, c.reads = true, true, true }},
		{"m speaks before the record with S is durable, leases", deep, "", 0,
			func(c *model) { c.together, c.ownUnsynced, c.leases = true, true, true }},
		{"S behind a joint configuration", whole, "", 0, func(c *model) { c.joints, c.sealsJoint = true, true }},
		{"begun is forgotten", deep, "", 0, func(c *model) { c.leases, c.forgets = true, true }},
		{"old answers", deep, "", 0, func(c *model) { c.leases, c.oldAnswers = true, true }},
	})
}

// TestReached: commands are decided in the last instance, while a member is still in the first one.
func TestReached(t *testing.T) {
	reached(t, 16, func(c *model) { c.chain(); c.elections, c.firsts = 0, 1 })
	reached(t, 14, func(c *model) { c.built(); c.length[0], c.length[1] = 1, 2 })
}

func reached(t *testing.T, steps int, change func(*model)) {
	c := model{terms: [...]uint8{2, 2, 1}}
	change(&c)
	space := c.space()
	space.Judge = func(s *cluster) string {
		for x := range s.m {
			if s.n == 3 && s.m[x].at == 0 {
				return "reached"
			}
		}
		return ""
	}
	s := search{want: "reached", steps: steps}
	s.check(t, space)
}
