package quorum

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// The brute-force versions try every set of voters, as a mask of their places.

// dumbQuorum reports whether a set of n voters elects, or decides.
func dumbQuorum(y System, n int, mask uint, elects bool) bool {
	if y.rows > 0 {
		columns := max(1, n/y.rows)
		all, whole := true, false
		for c := range columns {
			in, of := 0, 0
			for i := c; i < n; i += columns {
				of++
				in += int(mask >> i & 1)
			}
			all, whole = all && in > 0, whole || in == of
		}
		return elects && all || !elects && whole
	}
	if z := y.zones; z.Count > 0 {
		won := 0
		for c := range z.Count {
			in, of := 0, 0
			for i := c; i < n; i += z.Count {
				of++
				in += int(mask >> i & 1)
			}
			if down := min(z.Down, of-1); of > 0 && (elects && in >= of-down || !elects && in > down) {
				won++
			}
		}
		return elects && won >= z.Count-z.Lost || !elects && won > z.Lost
	}
	need := n/2 + 1
	switch {
	case y.Majority():
	case elects:
		need = y.elect
	default:
		need = y.decide
	}
	return bits.OnesCount(mask) >= need
}

func voters(n int) (ids []protocol.MemberID) {
	for i := range n {
		ids = append(ids, protocol.MemberID(10*i+3))
	}
	return ids
}

// systems are all systems with numbers up to n.
func systems(n int) []System {
	all := []System{{}}
	for a := 1; a <= n; a++ {
		all = append(all, InGrid(a))
		for b := 1; b <= n; b++ {
			all = append(all, Sizes(a, b))
		}
		for lost := range a {
			for down := range 3 {
				all = append(all, InZones(Zones{a, lost, down}))
			}
		}
	}
	return all
}

// place is the zone of a voter.
func place(id protocol.MemberID) int { return int(id-3) / 10 }

// A system fits if and only if there are quorums of both phases, and every two of them intersect; a grid also needs a
// column's voters.
func TestEveryElectionMeetsEveryDecision(t *testing.T) {
	fit := 0
	for n := 1; n <= 7; n++ {
		for _, y := range systems(8) {
			meet, some := true, [2]bool{}
			for a := range uint(1) << n {
				if dumbQuorum(y, n, a, true) {
					some[0] = true
				}
				for b := range uint(1) << n {
					some[1] = some[1] || dumbQuorum(y, n, b, false)
					meet = meet && (a&b != 0 || !dumbQuorum(y, n, a, true) || !dumbQuorum(y, n, b, false))
				}
			}
			err := y.Fits(n, nil)
			require.Equal(t, meet && some[0] && some[1] && y.rows <= n && y.zones.Count <= n, err == nil, "%s of %d: %v", y, n,
				err)
			if err == nil {
				fit++
			}
		}
	}
	require.Equal(t, 35+84+252, fit, "seven majorities, 28 grids, sizes, and zones")
}

// Vote, Agreed and Covered equal the brute-force versions.
func TestSystemsAgainstTheDumbVersion(t *testing.T) {
	for n := 1; n <= 7; n++ {
		for _, y := range systems(n) {
			for phase, set := range []Set{y.Elects(Set{Incoming: voters(n)}), y.Decides(Set{Incoming: voters(n)})} {
				quorum := func(mask uint) bool { return dumbQuorum(y, n, mask, phase == 0) }
				checkVotes(t, fmt.Sprintf("%s of %d in phase %d", y, n, phase+1), set, n, quorum)
				checkCovered(t, set, n, quorum)
			}
		}
	}
}

// checkVotes tries all combinations of answers, and uses the answers as the values that voters have reached.
func checkVotes(t *testing.T, what string, set Set, n int, quorum func(uint) bool) {
	ways := 1
	for range n {
		ways *= 3
	}
	for way := range ways {
		var answers [7]Answer
		var granted, open uint
		for i, rest := 0, way; i < n; i, rest = i+1, rest/3 {
			answers[i] = Answer(rest % 3)
			if answers[i] == Granted {
				granted |= 1 << i
			} else if answers[i] == Missing {
				open |= 1 << i
			}
		}
		want := Open
		switch {
		case quorum(granted):
			want = Won
		case !quorum(granted | open):
			want = Lost
		}
		if got := set.Vote(func(id protocol.MemberID) Answer { return answers[place(id)] }); got != want {
			t.Fatalf("%s: the vote is %s and not %s with %v", what, got, want, answers[:n])
		}
		reached := uint64(0)
		for v := uint64(1); v <= 2; v++ {
			mask := uint(0)
			for i := range n {
				if uint64(answers[i]) >= v {
					mask |= 1 << i
				}
			}
			if quorum(mask) {
				reached = v
			}
		}
		if got := set.Agreed(func(id protocol.MemberID) uint64 { return uint64(answers[place(id)]) }); got != reached {
			t.Fatalf("%s: agreed on %d and not %d with %v", what, got, reached, answers[:n])
		}
	}
}

func checkCovered(t *testing.T, set Set, n int, quorum func(uint) bool) {
	for is := range uint(1) << n {
		want := true
		for q := range uint(1) << n {
			want = want && (!quorum(q) || q&is != 0)
		}
		if exists := quorum(1<<n - 1); exists {
			has := func(id protocol.MemberID) bool { return is>>place(id)&1 == 1 }
			require.Equal(t, want, set.Covered(has), "%+v %b", set, is)
			fewest := n
			for q := range uint(1) << n {
				if quorum(q) {
					fewest = min(fewest, bits.OnesCount(q&is))
				}
			}
			require.LessOrEqual(t, set.Fewest(has), fewest, "%+v %b", set, is)
			if !set.Grid.on() {
				require.Equal(t, fewest, set.Fewest(has), "%+v %b", set, is)
			}
		}
	}
}

func TestTolerance(t *testing.T) {
	for n := 1; n <= 7; n++ {
		for _, y := range systems(n) {
			if y.Fits(n, nil) != nil {
				continue
			}
			decide, heal := n, n
			for down := range uint(1) << n {
				up := uint(1)<<n - 1 - down
				if !dumbQuorum(y, n, up, false) {
					decide = min(decide, bits.OnesCount(down)-1)
				}
				if !dumbQuorum(y, n, up, true) {
					heal = min(heal, bits.OnesCount(down)-1)
				}
			}
			require.Equal(t, Tolerance{y, n, decide, heal}, y.Tolerates(n, nil), "%s of %d", y, n)
		}
	}
}

// The text for operators.
func TestToleranceInWords(t *testing.T) {
	for text, less := range map[string]bool{
		"quorums majority of 5 voters: a leader goes on while 2 of them are down, and is replaced while 2 are": false,
		"quorums 3/2 of 4 voters: a leader goes on while 2 of them are down, and is replaced while 1 are":      false,
		"quorums 4/2 of 5 voters: a leader goes on while 3 of them are down, and is replaced while 1 are; the cluster " +
			"survives any 1 of the 2 crashes that majorities survive": true,
		"quorums grid:2 of 6 voters: a leader goes on while 2 of them are down, and is replaced while 1 are; the cluster " +
			"survives any 1 of the 2 crashes that majorities survive": true,
	} {
		var name string
		var n int
		_, err := fmt.Sscanf(text, "quorums %s of %d", &name, &n)
		require.NoError(t, err)
		y, err := Parse(name)
		require.NoError(t, err)
		require.Equal(t, text, y.Tolerates(n, nil).String())
		require.Equal(t, less, y.Tolerates(n, nil).Less())
	}
}

// A change of members carries decisions if every set shows that.
func TestCarries(t *testing.T) {
	yes := 0
	for _, y := range systems(5) {
		for old := uint(1); old < 1<<6; old++ {
			for next := uint(1); next < 1<<6; next++ {
				from, to := pick(old), pick(next)
				if y.Fits(len(from), nil) != nil || y.Fits(len(to), nil) != nil {
					continue
				}
				want := dumbCarries(y, from, to)
				if want {
					yes++
				}
				require.Equal(t, want, y.Carries(Voters{IDs: from}, Voters{IDs: to}), "%s from %v to %v", y, from, to)
			}
		}
	}
	require.Greater(t, yes, 1000)
}

func pick(mask uint) (ids []protocol.MemberID) {
	for i := range 6 {
		if mask>>i&1 == 1 {
			ids = append(ids, protocol.MemberID(i+1))
		}
	}
	return ids
}

func dumbCarries(y System, old, next []protocol.MemberID) bool {
	for decided := range uint(1) << len(old) {
		if !dumbQuorum(y, len(old), decided, false) {
			continue
		}
		var have uint
		for i, id := range old {
			for j, to := range next {
				if decided>>i&1 == 1 && id == to {
					have |= 1 << j
				}
			}
		}
		for elected := range uint(1) << len(next) {
			if dumbQuorum(y, len(next), elected, true) && elected&have == 0 {
				return false
			}
		}
	}
	return true
}

// TestAdmits: a member that joins is to become a voter with quorums that intersect, and where there are bodies these go
// over to the next voters.
func TestAdmits(t *testing.T) {
	config := func(voters, joining int) *protocol.Config {
		c := &protocol.Config{}
		for i := range voters + joining {
			joins := i >= voters
			c.Members = append(c.Members, protocol.Member{ID: protocol.MemberID(1 + i), Learner: joins, Joining: joins})
		}
		return c
	}
	zones := InZones(Zones{Count: 3, Lost: 2, Down: 1})
	for _, x := range []struct {
		system         System
		voters, joins  int
		bodies, admits bool
	}{
		{System{}, 4, 2, true, true},
		{Sizes(3, 2), 3, 1, true, true},
		{Sizes(3, 2), 4, 1, false, false},
		{Sizes(4, 2), 4, 1, true, true},
		{zones, 4, 1, false, true},
		{zones, 4, 1, true, false},
		{zones, 4, 0, true, true},
		{zones, 6, 1, true, true},
		{InGrid(2), 3, 1, true, true},
		{InGrid(2), 3, 2, true, false}, // the second one
		{InGrid(2), 3, 2, false, true},
	} {
		require.Equal(t, x.admits, x.system.Admits(config(x.voters, x.joins), x.bodies), "%+v", x)
	}
}

// While joint, both halves have to agree, each in its own columns.
func TestJointGrids(t *testing.T) {
	joint := Set{Incoming: voters(6), Outgoing: voters(9)[5:]}
	for _, y := range []System{InGrid(2), Sizes(4, 3)} {
		for _, set := range []Set{y.Elects(joint), y.Decides(joint)} {
			half := func(ids []protocol.MemberID) Set { return Set{Incoming: ids, Need: set.Need, Grid: set.Grid} }
			for up := range uint(1) << 9 {
				answer := func(id protocol.MemberID) Answer {
					if up>>place(id)&1 == 1 {
						return Granted
					}
					return Missing
				}
				in, out := half(joint.Incoming).Vote(answer), half(joint.Outgoing).Vote(answer)
				require.Equal(t, in == Won && out == Won, set.Vote(answer) == Won)
				reached := func(id protocol.MemberID) uint64 { return uint64(answer(id)) }
				require.Equal(t, in == Won && out == Won, set.Agreed(reached) == 1)
			}
		}
	}
}

func TestNobodyDecidesNothingInAGrid(t *testing.T) {
	for _, across := range []bool{true, false} {
		s := Set{Grid: Grid{Rows: 2, Across: across}}
		require.Zero(t, s.Agreed(func(protocol.MemberID) uint64 { return 7 }))
		require.Equal(t, Lost, s.Vote(func(protocol.MemberID) Answer { return Granted }))
	}
}

func TestSystemsInWords(t *testing.T) {
	for _, y := range systems(4) {
		read, err := Parse(y.String())
		require.NoError(t, err)
		require.Equal(t, y, read)
		require.Equal(t, y, Setting.In(Setting.Set(setting.Values{}, y)))
	}
	for _, text := range []string{"4", "4/", "/2", "0/3", "-1/2", "4/2/1", "grid", "grid:", "grid:0", "grid:x", "half",
		"99999/1", "zones:", "zones:3", "zones:3/1", "zones:0/0/0", "zones:2/2/0", "zones:3/x/0", "zones:3/0/1/0"} {
		_, err := Parse(text)
		var wrong *TextError
		require.ErrorAs(t, err, &wrong, text)
		require.ErrorContains(t, err, text)
	}
}

func TestWhatDoesNotFitSaysWhy(t *testing.T) {
	for _, c := range []struct {
		y    System
		n    int
		why  Why
		says string
	}{
		{Sizes(3, 2), 5, DoNotMeet, "quorums 3/2: of 5 voters, 3 can elect a leader, none of them among the 2 that " +
			"decide; the sum has to be more than 5"},
		{Sizes(4, 2), 3, TooLarge, "quorums 4/2: there are 3 voters"},
		{Sizes(1, 4), 3, TooLarge, "quorums 1/4: there are 3 voters"},
		{InGrid(3), 2, TooFew, "quorums grid:3: 2 voters are no column of 3"},
		{InZones(Zones{3, 1, 0}), 2, TooFew, "quorums zones:3/1/0: there are 2 voters"},
	} {
		var wrong *FitError
		require.ErrorAs(t, c.y.Fits(c.n, nil), &wrong)
		require.Equal(t, FitError{System: c.y, Voters: c.n, Why: c.why}, *wrong)
		require.EqualError(t, wrong, c.says)
	}
}
