package quorum

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/braidlog/braid/protocol"
)

// System has the quorums that elect a leader and those that decide its proposals, if these differ: quorums of Paxos'
// phase 1 and phase 2 (docs/internals/multi-paxos.md). Every quorum of phase 1 intersects every quorum of phase 2.
// Two of the same phase need not intersect. The zero System has majorities only.
type System struct {
	// elect and decide are the sizes of quorums of phase 1 and of phase 2; 0: a majority.
	elect, decide int
	// rows, if > 0, puts voters into a [Grid]: one of each column elects, and a whole column decides.
	rows int
	// zones, if any, puts voters into a [Grid] of these.
	zones Zones
}

// Sizes is the system in which any elect voters elect, and any decide voters decide.
func Sizes(elect, decide int) System { return System{elect: elect, decide: decide} }

// InGrid is the system of a grid with columns of at least this many voters.
func InGrid(rows int) System { return System{rows: rows} }

// InZones is the system of voters in zones. The page of WPaxos explains its purpose.
func InZones(z Zones) System { return System{zones: z} }

// valid reports whether the numbers make one system.
func (y System) valid() bool {
	z, kinds := y.zones, 0
	for _, is := range [...]bool{y.elect > 0, y.rows > 0, z.Count > 0} {
		if is {
			kinds++
		}
	}
	return y.rows >= 0 && y.elect >= 0 && y.decide >= 0 && (y.elect == 0) == (y.decide == 0) && kinds <= 1 &&
		z.Count >= 0 && z.Lost >= 0 && z.Down >= 0 && (z.Lost < z.Count || z == Zones{})
}

// Parse parses the output of String: "majority", "ELECT/DECIDE" as in 4/2, "grid:ROWS" as in grid:2,
// "zones:COUNT/LOST/DOWN" as in zones:3/0/1. "" means majorities too. The error is a [*TextError].
func Parse(text string) (System, error) {
	if zones, is := strings.CutPrefix(text, "zones:"); is {
		return parseZones(text, strings.Split(zones, "/"))
	}
	rows, grid := strings.CutPrefix(text, "grid:")
	elect, decide, sizes := strings.Cut(text, "/")
	y := System{}
	switch {
	case text == "" || text == majorityText:
		return y, nil
	case grid:
		y = InGrid(number(rows))
	case sizes:
		y = Sizes(number(elect), number(decide))
	}
	if y.rows > 0 || y.elect > 0 && y.decide > 0 {
		return y, nil
	}
	return System{}, &TextError{text}
}

func parseZones(text string, words []string) (System, error) {
	var n [3]int
	for i, word := range words {
		if i == len(n) || number(word) == 0 && word != "0" {
			return System{}, &TextError{text}
		}
		n[i] = number(word)
	}
	if y := InZones(Zones{n[0], n[1], n[2]}); len(words) == len(n) && n[0] > 0 && y.valid() {
		return y, nil
	}
	return System{}, &TextError{text}
}

const majorityText = "majority"

// number returns 0 for a text that is not a number of members.
func number(s string) int {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return 0
	}
	return int(n)
}

// TextError indicates that a text names no [System].
type TextError struct{ Text string }

func (e *TextError) Error() string {
	return fmt.Sprintf("quorums %q: want majority, ELECT/DECIDE as in 4/2, grid:ROWS as in grid:2, or "+
		"zones:COUNT/LOST/DOWN as in zones:3/0/1, where LOST is below COUNT", e.Text)
}

func (y System) String() string {
	switch {
	case y.rows > 0:
		return "grid:" + strconv.Itoa(y.rows)
	case y.zones.Count > 0:
		return fmt.Sprintf("zones:%d/%d/%d", y.zones.Count, y.zones.Lost, y.zones.Down)
	case y.Majority():
		return majorityText
	}
	return fmt.Sprintf("%d/%d", y.elect, y.decide)
}

// Majority reports whether all quorums are majorities.
func (y System) Majority() bool { return y == System{} }

// Parts are the numbers of voters that elect and decide, the rows of a grid, and zones; 0 for those that the system
// does not have.
func (y System) Parts() (elect, decide, rows int, zones Zones) {
	return y.elect, y.decide, y.rows, y.zones
}

// Elects returns the quorums of phase 1 of a set's voters: they promise.
func (y System) Elects(s Set) Set {
	s.Need, s.Grid = y.elect, y.grid(true)
	return s
}

// Decides returns the quorums of phase 2 of a set's voters: they accept.
func (y System) Decides(s Set) Set {
	s.Need, s.Grid = y.decide, y.grid(false)
	return s
}

// Why is the reason why a system is not valid.
type Why uint8

// The reasons.
const (
	// NoSystem: the numbers describe more than one system, or are negative, or one is missing.
	NoSystem Why = 1 + iota
	// TooLarge: a quorum has more voters than there are.
	TooLarge
	// DoNotMeet: some quorums of the two phases do not intersect.
	DoNotMeet
	// TooFew: there are fewer voters than in a column, or than zones.
	TooFew
)

// FitError explains why a system is not valid for a given number of voters. Nothing was started or changed.
type FitError struct {
	System System
	Voters int
	Why    Why
}

func (e *FitError) Error() string {
	y := &e.System
	switch e.Why {
	case TooLarge:
		return fmt.Sprintf("quorums %s: there are %d voters", y, e.Voters)
	case DoNotMeet:
		return fmt.Sprintf("quorums %s: of %d voters, %d can elect a leader that hears of nobody among the %d that decide; "+
			"the sum has to be more than %d",
			y, e.Voters, y.elect, y.decide, e.Voters)
	case TooFew:
		if y.rows == 0 {
			return fmt.Sprintf("quorums %s: there are %d voters", y, e.Voters)
		}
		return fmt.Sprintf("quorums %s: %d voters are no column of %d", y, e.Voters, y.rows)
	}
	return fmt.Sprintf("quorums: %d elect, %d decide, %d rows and zones %v are no system", y.elect, y.decide,
		y.rows, y.zones)
}

// Fits returns a [*FitError] unless the system is valid for a given number of voters: it has quorums, and those of
// the two phases intersect.
func (y System) Fits(voters int) error {
	why := Why(0)
	switch {
	case y.rows > voters, y.zones.Count > voters:
		why = TooFew
	case y.rows > 0 || y.zones.Count > 0 || y.Majority():
	case y.elect > voters || y.decide > voters:
		why = TooLarge
	case y.elect+y.decide <= voters:
		why = DoNotMeet
	}
	if why == 0 {
		return nil
	}
	return &FitError{y, voters, why}
}

// Carries reports whether every quorum of phase 2 of the old voters, without those that leave, intersects every
// quorum of phase 1 of the next ones. So every quorum of the next ones includes a member with the decisions of the
// old ones.
func (y System) Carries(old, next []protocol.MemberID) bool {
	switch {
	case y.rows > 0:
		columns := y.grid(false).columns(len(old))
		for i := range columns {
			if !y.meets(column(nil, old, i, columns), next) {
				return false
			}
		}
		return true
	case y.zones.Count > 0:
		return y.zonesCarry(old, next)
	}
	stay := y.Decides(Set{}).need(len(old))
	for _, id := range old {
		if !has(next, id) {
			stay--
		}
	}
	return stay+y.Elects(Set{}).need(len(next)) > len(next)
}

// Zone is the zone of a voter; without zones every voter has a different one.
func (y System) Zone(voters []protocol.MemberID, id protocol.MemberID) int {
	at, _ := slices.BinarySearch(voters, id)
	if y.zones.Count > 0 {
		return at % y.zones.Count
	}
	return at
}

// meets reports whether every electing quorum of the next voters includes one of these members.
func (y System) meets(decided, next []protocol.MemberID) bool {
	return y.Elects(Set{Incoming: next}).Covered(func(id protocol.MemberID) bool { return has(decided, id) })
}

// fewToTry is the number of voters in zones up to which all sets are tried. With more voters Carries reports false.
const fewToTry = 12

func (y System) zonesCarry(old, next []protocol.MemberID) bool {
	if len(old) > fewToTry {
		return false
	}
	decides := y.Decides(Set{Incoming: old})
	var some []protocol.MemberID
	for mask := range 1 << len(old) {
		some = some[:0]
		for i, id := range old {
			if mask>>i&1 == 1 {
				some = append(some, id)
			}
		}
		won := decides.Vote(func(id protocol.MemberID) Answer {
			if has(some, id) {
				return Granted
			}
			return Refused
		})
		if won == Won && !y.meets(some, next) {
			return false
		}
	}
	return true
}

func (y System) grid(across bool) Grid { return Grid{y.rows, y.zones, across} }
