package issmodel

import (
	"strings"
	"testing"

	"github.com/braidlog/braid/internal/explore"
	"github.com/braidlog/braid/internal/testsize"
)

// Member 1 leads the first epoch. If it is not in the second one, the joiner leads that.
var (
	joins  = change{add: 0b1000}
	leaves = change{remove: 0b0001, presumes: 0b1000}
)

// growsAndShrinks: the joiner is added in one epoch, and member 1 removed in the next.
func growsAndShrinks() scenario {
	return scenario{
		changes: [places]change{joins, leaves}, first: [epochs + 1]int{0, 1, 2},
		highest: [epochs]uint8{1, 1}, deaths: 2, mayMirror: true,
	}
}

// anotherLeaves: the same, but member 2 leaves, and member 1 leads both epochs.
func anotherLeaves() scenario {
	s := quickly(growsAndShrinks())
	s.changes[1].remove, s.mayMirror = 0b0010, false
	return s
}

// quickly: the second epoch has ballot 0 alone.
func quickly(s scenario) scenario {
	s.highest[1] = 0
	return s
}

// replaces: member 1 is replaced by the joiner, with one command.
func replaces() scenario {
	s := growsAndShrinks()
	s.changes = [places]change{{add: 0b1000, remove: 0b0001}}
	return s
}

// twoCommands: the same with two commands of one epoch, then an ordinary value.
func twoCommands() scenario {
	s := growsAndShrinks()
	s.first, s.highest = [epochs + 1]int{0, 2, 3}, [epochs]uint8{1, 0}
	return s
}

// thenOrdinary: one command replaces, an ordinary value follows in the same epoch.
func thenOrdinary() scenario {
	s := twoCommands()
	s.changes = replaces().changes
	return s
}

// thereAndBack: the joiner is added and removed in one epoch.
func thereAndBack() scenario {
	s := twoCommands()
	s.changes = [places]change{joins, {remove: 0b1000, presumes: 0b1000}}
	return s
}

func TestChangeHolds(t *testing.T) {
	testsize.Long(t)
	for _, c := range []struct {
		name  string
		story scenario
	}{
		{"grows and shrinks", growsAndShrinks()},
		{"another leaves", anotherLeaves()},
		{"replaces", quickly(replaces())},
	} {
		t.Run(c.name, func(t *testing.T) { run(t, &changeModel{scenario: c.story}, quickLimit, "") })
	}
}

func TestChangeDeep(t *testing.T) {
	if !testsize.Runs(testsize.Deep) {
		return
	}
	more := growsAndShrinks()
	more.highest[0] = 2
	further := replaces()
	further.highest[0] = 2
	for _, c := range []struct {
		name  string
		story scenario
		rules changeRules
	}{
		{"grows and shrinks, ballots 0 to 2", more, changeRules{}},
		{"replaces", replaces(), changeRules{}},
		{"replaces, ballots 0 to 2", further, changeRules{}},
		{"two commands", twoCommands(), changeRules{}},
		{"there and back", thereAndBack(), changeRules{}},
		{"one command, then ordinary", thenOrdinary(), changeRules{}},
		{"the same, and ⊥ is decided at once where it may", thenOrdinary(), changeRules{fast: true, fastNotLast: true}},
	} {
		t.Run(c.name, func(t *testing.T) { run(t, &changeModel{scenario: c.story, changeRules: c.rules}, deepLimit, "") })
	}
}

// The search covers these states: the joiner votes, the leaver leaves, and a member that does not know of the change
// opens a ballot of the old epoch when others are in the next one.
func TestChangeTakesItsWays(t *testing.T) {
	seen := map[string]bool{}
	m := &changeModel{scenario: quickly(replaces())}
	r := explore.Search(searched(m), quickLimit, func(s *turn, what step) {
		switch text := what.String(); {
		case strings.HasPrefix(text, "4 votes"), text == "1 leaves", text == "4 dies":
			seen[text] = true
		case text == "3 opens ballot 1 of epoch 0" && m.now(s, 0) == 1 && m.now(s, joiner) == 1:
			seen["late"] = true
		}
	})
	for _, want := range []string{"4 votes for v at sequence number 2 in ballot 0", "1 leaves", "4 dies", "late"} {
		if !r.Whole || !seen[want] {
			t.Errorf("%q does not happen", want)
		}
	}
}

// Each variant has the result in its line.
func TestChangeVariants(t *testing.T) {
	testsize.Long(t)
	unconditional := twoCommands()
	unconditional.changes[1].presumes = 0
	for _, c := range []struct {
		name  string
		story scenario
		rules changeRules
		want  string
	}{
		{"a joiner takes part before it has the decisions", replaces(), changeRules{joinsEarly: true}, "lost"},
		{"a member leaves at its own checkpoint", replaces(), changeRules{leavesOwn: true}, "lost"},
		{"the same, after one joined", growsAndShrinks(), changeRules{leavesOwn: true}, "lost"},
		{"a member leaves when the epoch is stable", replaces(), changeRules{leavesStable: true}, "lost"},
		{"one member fewer of the next configuration is enough", replaces(), changeRules{leavesFew: true}, "lost"},
		{"a change takes effect at once", thenOrdinary(), changeRules{midEpoch: true}, "configurations differ"},
		{"changes are folded as they are learned", thereAndBack(), changeRules{asLearned: true}, "configurations differ"},
		{"a member hears only those that it knows", replaces(), changeRules{noStrangers: true}, "stuck"},
		{"a member answers only for epochs that it was in", replaces(), changeRules{newcomersSilent: true}, "stuck"},
		{"a read asks in one epoch only", replaces(), changeRules{readsOnce: true}, "stale"},
		{"⊥ is decided at once at the last sequence number", thenOrdinary(), changeRules{fast: true}, "stale"},
		{"the second of two commands does not presume the first", unconditional, changeRules{}, "stuck"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &changeModel{scenario: c.story, changeRules: c.rules}
			m.deaths = 1
			m.ignoreFuture = c.want == "configurations differ"
			run(t, m, quickLimit, c.want)
		})
	}
	t.Run("a joiner does not count as one that may fail", func(t *testing.T) {
		run(t, &changeModel{scenario: growsAndShrinks(), changeRules: changeRules{joinerSpared: true}}, quickLimit, "stuck")
	})
	t.Run("a change takes effect at once, and then", func(t *testing.T) {
		m := &changeModel{scenario: thenOrdinary(), changeRules: changeRules{midEpoch: true}, ignoreConfigs: true,
			ignoreFuture: true}
		m.deaths = 0
		run(t, m, quickLimit, "disagreement")
	})
}

// A joiner may vote before it has the decisions of earlier epochs, as long as it is not counted among
// those that have them.
func TestChangeAlternatives(t *testing.T) {
	run(t, &changeModel{scenario: quickly(replaces()), changeRules: changeRules{joinsEarly: true, honest: true}},
		quickLimit, "")
}
