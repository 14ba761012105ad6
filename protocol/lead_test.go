package protocol

import (
	"slices"
	"testing"
)

func TestLeaders(t *testing.T) {
	voters := []MemberID{3, 5, 8, 13}
	for _, c := range []struct {
		leaders Leaders
		turn    int
		first   MemberID
		want    MemberID
	}{
		{LeadersAny, 0, 3, 0},
		{LeadersTogether, 0, 8, 8},
		{LeadersTogether, 3, 8, 8},
		{LeadersTogether, 3, 0, 0},
		{LeadersTogether, 3, 9, 0}, // a learner, or gone
		{LeadersSpread, 0, 8, 3},
		{LeadersSpread, 3, 8, 13},
		{LeadersSpread, 4, 8, 3},
		{LeadersSpread, 9, 8, 5},
	} {
		if got := c.leaders.Preferred(voters, c.turn, c.first); got != c.want {
			t.Errorf("%s: turn %d, first led by %s: %s, want %s", c.leaders, c.turn, c.first, got, c.want)
		}
	}
	if LeadersSpread.Preferred(nil, 1, 3) != 0 {
		t.Error("nobody can be preferred among none")
	}
}

// Voters take turns by their ids, and where they have zones, from zone to zone.
func TestTurnsOfZones(t *testing.T) {
	c := Config{Members: []Member{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4, Learner: true}, {ID: 5}, {ID: 6}, {ID: 7}}}
	if got := c.Turns(); !slices.Equal(got, []MemberID{1, 2, 3, 5, 6, 7}) {
		t.Errorf("without zones: %v", got)
	}
	for i, zone := range []string{"b", "b", "a", "c", "b", "a", ""} {
		c.Members[i].Zone = zone
	}
	if got := c.Turns(); !slices.Equal(got, []MemberID{1, 3, 7, 2, 6, 5}) {
		t.Errorf("with zones: %v", got)
	}
}

// Ranks are 0, 1, 2 … for any set of failed members, and begin with the preferred one.
func TestRanks(t *testing.T) {
	all := []MemberID{2, 3, 5, 7, 11, 13, 17}
	for n := 1; n <= len(all); n++ {
		voters := all[:n]
		for _, l := range []Leaders{LeadersAny, LeadersTogether, LeadersSpread} {
			for r := range 60 {
				for _, gone := range append([]MemberID{0, 99}, voters...) {
					var ranks []int
					for _, id := range voters {
						if id != gone {
							ranks = append(ranks, l.Rank(voters, r, id, gone))
						}
					}
					slices.Sort(ranks)
					for i, rank := range ranks {
						if rank != i {
							t.Fatalf("%s: %d voters, turn %d without %s: ranks %v", l, n, r, gone, ranks)
						}
					}
				}
				if p := l.Preferred(voters, r, 0); p != 0 && l.Rank(voters, r, p, 0) != 0 {
					t.Fatalf("%s: %d voters, turn %d: %s is preferred, but not first", l, n, r, p)
				}
			}
		}
	}
}

// What one member led goes to all others alike when they are spread, and to one when they
// are together.
func TestRanksShareOut(t *testing.T) {
	voters := []MemberID{1, 2, 3, 4, 5}
	heirs := map[Leaders]map[MemberID]int{LeadersTogether: {}, LeadersSpread: {}}
	for l, got := range heirs {
		for r := 1; r < 41; r += 5 { // those that 2 leads if they are spread
			for _, id := range voters {
				if id != 2 && l.Rank(voters, r, id, 2) == 0 {
					got[id]++
				}
			}
		}
	}
	if got := heirs[LeadersSpread]; len(got) != 4 || got[1] != 2 || got[3] != 2 || got[4] != 2 || got[5] != 2 {
		t.Errorf("spread: %v", got)
	}
	if got := heirs[LeadersTogether]; len(got) != 1 || got[1] != 8 {
		t.Errorf("together: %v", got)
	}
}

// Whatever ids reshapes left, no voter leads more than one instance more than another, and the
// heirs of one that is gone are spread too.
func TestLeadersAreSpreadOverTheInstancesInForce(t *testing.T) {
	voters := []MemberID{1, 2, 3}
	for _, ids := range [][]InstanceID{{1, 2, 3}, {1, 4, 5}, {1, 4, 7}, {1, 4, 7, 10, 13, 16}} {
		leads := map[MemberID]int{}
		for turn := range ids {
			leads[LeadersSpread.Preferred(voters, turn, 0)]++
		}
		for _, id := range voters {
			if leads[id] != len(ids)/len(voters) {
				t.Errorf("instances %v: %v", ids, leads)
			}
		}
	}
}
