package ballots

import (
	"strings"
	"testing"

	"github.com/braidlog/braid/internal/explore"
	"github.com/braidlog/braid/internal/testsize"
)

// most is a bound that no search comes to.
const most = 12_000_000

// A search is quick, or part of campaign models, or of campaign deep.
const (
	quick = iota
	whole
	deep
)

var (
	paxos = model{epoch: 1, slots: 1, crashes: 1, opens: 1, seals: 1}
	gaps  = model{epoch: 1, slots: 2, crashes: 0, opens: 1, seals: 1, puts: true}
	iss   = model{epoch: 2, slots: 2, crashes: 0, opens: 1, seals: 2, changes: true}
)

func (m model) more(slots, crashes, opens uint8) model {
	m.slots, m.crashes, m.opens = slots, crashes, opens
	return m
}

// TestRulesHold: multi-Paxos, and ISS with two leaders.
func TestRulesHold(t *testing.T) {
	size := quick
	if testsize.Runs(testsize.Models) {
		size = whole
	} else if testsize.Runs(testsize.Deep) {
		size = deep
	}
	for _, c := range []struct {
		name string
		size int
		m    model
	}{
		{"multi-Paxos", quick, paxos},
		{"multi-Paxos, two slots", quick, gaps},
		{"ISS", quick, iss},
		{"multi-Paxos, two slots, a crash", whole, gaps.more(2, 1, 1)},
		{"multi-Paxos, two ballots and crashes", whole, paxos.more(1, 2, 2)},
		{"ISS, a crash", whole, iss.more(2, 1, 1)},
		{"ISS, two ballots", deep, iss.more(2, 0, 2)},
		{"ISS, two epochs", whole, iss.more(4, 0, 0)},
		{"multi-Paxos, two slots, two ballots", deep, gaps.more(2, 0, 2)},
	} {
		if c.size <= size {
			t.Run(c.name, func(t *testing.T) { explore.Run(t, c.m.space(), most, "") })
		}
	}
}

const (
	p1 = "P1: a member begins at another place"
	p2 = "P2: two values in a slot"
	p4 = "P4: a read misses"
)

// TestVariants: each rule is needed.
func TestVariants(t *testing.T) {
	for _, c := range []struct {
		name    string
		m       model
		variant variant
		want    string
		steps   int
	}{
		{"W2: begins when S is decided, and not all before it", gaps, variant{gap: true}, p1, 4},
		{"W2: one member takes the slot of S for p in ISS", iss, variant{shortEpoch: true}, p1, 4},
		{"W3: m speaks before its first record is durable", paxos, variant{bornTwice: true}, p2, 13},
		{"W5: a proposer reads while its ballot is the highest", paxos, variant{leasedReads: true}, p4, 11},
		{"W6: m uses its ballot again after a restart", paxos, variant{leadsAgain: true}, p2, 13},
		{"W7: S counts although the next epoch has other members", iss, variant{ownMembers: true}, p1, 7},
		{"W8: cells are given up by a member that promises", paxos, variant{dropsCells: true}, p2, 12},
	} {
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

// TestHarmless: answers in the old order after a member has begun break nothing while it keeps its cells.
func TestHarmless(t *testing.T) {
	m := paxos
	m.oldAnswers = true
	explore.Run(t, m.space(), most, "")
}
