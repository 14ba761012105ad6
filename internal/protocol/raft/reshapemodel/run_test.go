package reshapemodel

import (
	"slices"
	"testing"

	"github.com/braidlog/braid/internal/explore"
	"github.com/braidlog/braid/internal/testsize"
)

// most is a bound that no search comes to.
const most = 12_000_000

var (
	shrinks = setting{name: "4→3, k=2", voters: 0b1111, k: 2, next: []uint8{0b0111}, length: [2]uint8{3, 3},
		bodies: 1, one: true}
	copies = setting{name: "4→3, k=3", voters: 0b1111, k: 3, next: []uint8{0b0111}, length: [2]uint8{3, 3}, bodies: 1,
		copies: true, one: true}
	grows = setting{name: "3→4, k=2", voters: 0b0111, k: 2, next: []uint8{0b1111}, length: [2]uint8{3, 3},
		bodies: 1, one: true}
	both = setting{name: "4→3→4, k=2", voters: 0b1111, k: 2, next: []uint8{0b0111, 0b1111}, length: [2]uint8{4, 2},
		bodies: 1}
	bare = setting{name: "4→3, no bodies", voters: 0b1111, k: 2, next: []uint8{0b0111}, length: [2]uint8{3, 3}}
)

// TestTheRulesHold: nothing is lost, and no one is stranded. Outside campaign models the second log is shorter.
func TestTheRulesHold(t *testing.T) {
	for _, s := range []setting{bare, copies, shrinks, grows, both} {
		if !testsize.Runs(testsize.Models) && (s.k == 2 && s.bodies > 0) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			if !testsize.Runs(testsize.Models) {
				s.length[second] = 2
			}
			explore.Run(t, (&model{setting: s}).space(), most, "")
		})
	}
}

// slow are variants that only a deep search looks at: what goes wrong takes many steps.
var slow = []rules{{countBehind: true, leaderBehind: true}, {leaderBehind: true}}

// TestVariants: each rule is needed.
func TestVariants(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules rules
		setting
		want string
	}{
		{"all three rules", before, shrinks, "lost"},
		{"both rules of who counts", rules{countBehind: true, leaderBehind: true}, copies, "lost"},
		{"who has not applied the last reshape counts", rules{countBehind: true}, shrinks, "lost"},
		{"the leader need not have applied it", rules{leaderBehind: true}, shrinks, "lost"},
		{"a reshape is proposed again without a check", rules{unrepeated: true}, copies, "lost"},
		{"the same, without bodies", rules{unrepeated: true}, bare, "stranded"},
		{"the first core is not told of the retired instance", rules{deaf: true}, copies, "lost"},
		{"nor of what is missing of it", rules{lacksNothing: true}, shrinks, "lost"},
		{"nobody asks for the state", rules{stateless: true}, shrinks, "stranded"},
		{"a reshape is not checked", rules{unchecked: true}, copies, "lost"},
		{"any majority commits", rules{naive: true}, shrinks, "lost"},
		{"the second instance follows freely", rules{followFreely: true}, copies, "lost"},
		{"who is behind in the log counts", rules{unmatched: true}, both, "lost"},
	} {
		if !testsize.Runs(testsize.Models) && slices.Contains(slow, c.rules) {
			continue
		}
		t.Run(c.name+": "+c.setting.name, func(t *testing.T) {
			c.bodiesOnly = c.want == "lost"
			explore.Run(t, (&model{setting: c.setting, rules: c.rules}).space(), most, c.want)
		})
	}
}

// TestOmissions: these rules are not needed alongside the others.
func TestOmissions(t *testing.T) {
	if !testsize.Runs(testsize.Models) {
		return
	}
	for _, c := range []struct {
		name  string
		rules rules
		setting
	}{
		{"a learner need not have its rows", rules{rowsAtOnce: true}, grows},
		{"members change while a reshape is pending", rules{whilePending: true}, copies},
		{"who is added does not wait for the second instance", rules{joinAtOnce: true}, grows},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			explore.Run(t, (&model{setting: c.setting, rules: c.rules}).space(), most, "")
		})
	}
}
