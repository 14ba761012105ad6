package protocol

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// history is what becomes of a membership, one random change after the other. kept[i] reports
// that the i-th change was to addresses only.
func history(rng *rand.Rand, steps int) (all []Config, kept []bool) {
	c := Config{Members: []Member{{ID: 10}, {ID: 20}, {ID: 30}}}
	if rng.IntN(2) == 0 {
		c.Number()
	}
	for next := MemberID(40); len(all) < steps; next += 10 {
		all = append(all, c.Clone())
		c.Number()
		m := &c.Members[rng.IntN(len(c.Members))]
		kept = append(kept, false)
		switch what := rng.IntN(5); {
		case what == 0 && m.Learner:
			m.Learner = false
		case what == 1 && len(c.Voters()) > 2:
			c.Removed = append(c.Removed, m.ID)
			slices.Sort(c.Removed)
			c.Members = slices.DeleteFunc(c.Members, func(x Member) bool { return x.ID == m.ID })
		case what == 2:
			m.PeerURLs = []string{fmt.Sprint("http://", rng.Uint64())}
			kept[len(kept)-1] = true
		case what == 3:
			m.Zone = fmt.Sprint("zone-", rng.Uint64())
			kept[len(kept)-1] = true
		default:
			id := next
			if rng.IntN(2) == 0 {
				id = 1000 - next // so that slots do not rise with ids
			}
			c.Members = append(c.Members, Member{ID: id, Learner: rng.IntN(2) == 0, Slot: uint8(c.Slots)})
			slices.SortFunc(c.Members, func(a, b Member) int { return int(a.ID) - int(b.ID) })
			c.Slots++
		}
	}
	return all, kept
}

// Whatever an instance missed, one step takes it to the other's members; never back.
func TestFollow(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		all, kept := history(rng, 20)
		for i := range all {
			for j := range all {
				next, ok := all[i].Follow(&all[j])
				switch {
				case j >= i && (!ok || !next.SameMembers(&all[j]) && all[j].Slots > 0):
					t.Fatalf("seed %d: from %+v to %+v: %t, %+v", seed, all[i], all[j], ok, next)
				case j < i && ok && slices.Contains(kept[j:i], false):
					t.Fatalf("seed %d: back from %+v to %+v: %+v", seed, all[i], all[j], next)
				}
				if n := len(Changes(&all[i], &all[j])); i == j && n != 0 || j == i+1 && n != 1 && i > 0 {
					t.Fatalf("seed %d: %d changes from %+v to %+v", seed, n, all[i], all[j])
				}
			}
		}
	}
}

func TestFollowRefuses(t *testing.T) {
	c := Config{Members: []Member{{ID: 1}, {ID: 2, Slot: 1}, {ID: 4, Slot: 3}}, Removed: []MemberID{3}, Slots: 4}
	for what, change := range map[string]func(*Config){
		"a joint one":               func(c *Config) { c.Outgoing = []MemberID{1} },
		"who is gone comes back":    func(c *Config) { c.Removed = nil },
		"who is gone is not named":  func(c *Config) { c.Members = c.Members[:2] },
		"a voter becomes a learner": func(c *Config) { c.Members[1].Learner = true },
		"a member changes its slot": func(c *Config) { c.Members[2].Slot, c.Slots = 4, 5 },
		"a slot given before":       func(c *Config) { c.Members, c.Slots = append(c.Members, Member{ID: 5, Slot: 2}), 5 },
		"a slot never given":        func(c *Config) { c.Members = append(c.Members, Member{ID: 5, Slot: 4}) },
		"fewer slots":               func(c *Config) { c.Slots = 3 },
		"no voters":                 func(c *Config) { c.Members, c.Removed = nil, []MemberID{1, 2, 3, 4} },
	} {
		target := c.Clone()
		change(&target)
		if next, ok := c.Follow(&target); ok {
			t.Errorf("%s: %+v", what, next)
		}
	}
	joint := c.Clone()
	joint.Outgoing = []MemberID{1}
	if _, ok := joint.Follow(&c); ok {
		t.Error("from a joint one")
	}
}

// The changes between two configurations say what is different about each member.
func TestChanges(t *testing.T) {
	from := Config{Members: []Member{{ID: 1}, {ID: 2, Learner: true}, {ID: 3, Learner: true}, {ID: 4}, {ID: 5}}}
	to := Config{Members: []Member{{ID: 1, Name: "a"}, {ID: 2}, {ID: 3, Learner: true, Zone: "b"}, {ID: 5}, {ID: 6},
		{ID: 7, Learner: true}}}
	var got []string
	for _, c := range Changes(&from, &to) {
		got = append(got, fmt.Sprintf("%d %s", c.Kind, c.Member.ID))
	}
	want := []string{
		fmt.Sprint(RemoveMember, " 4"), fmt.Sprint(UpdateMember, " 1"), fmt.Sprint(AddVoter, " 2"),
		fmt.Sprint(UpdateMember, " 3"), fmt.Sprint(AddVoter, " 6"), fmt.Sprint(AddLearner, " 7"),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
