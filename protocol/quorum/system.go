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
	s.columns = s.Grid.place(s.Zones)
	return s
}

// Decides returns the quorums of phase 2 of a set's voters: they accept.
func (y System) Decides(s Set) Set {
	s.Need, s.Grid = y.decide, y.grid(false)
	s.columns = s.Grid.place(s.Zones)
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
	// NoZone: the quorums are by zones, and some voters have a zone and others none.
	NoZone
	// OtherZones: the quorums are by another number of zones than the voters are in.
	OtherZones
)

// FitError explains why a system is not valid for a given number of voters. Nothing was started or changed.
type FitError struct {
	System System
	Voters int
	Why    Why
	// Zones is the number of zones that voters are in; 0: none has one.
	Zones int
}

func (e *FitError) Error() string {
	y := &e.System
	switch e.Why {
	case TooLarge:
		return fmt.Sprintf("quorums %s: there are %d voters", y, e.Voters)
	case DoNotMeet:
		return fmt.Sprintf("quorums %s: of %d voters, %d can elect a leader, none of them among the %d that decide; "+
			"the sum has to be more than %d",
			y, e.Voters, y.elect, y.decide, e.Voters)
	case TooFew:
		if y.rows == 0 {
			return fmt.Sprintf("quorums %s: there are %d voters", y, e.Voters)
		}
		return fmt.Sprintf("quorums %s: %d voters are no column of %d", y, e.Voters, y.rows)
	case NoZone:
		return fmt.Sprintf("quorums %s: some of the voters have no zone; either all have one, or none has", y)
	case OtherZones:
		return fmt.Sprintf("quorums %s: the voters are in %d zones", y, e.Zones)
	}
	return fmt.Sprintf("quorums: %d elect, %d decide, %d rows and zones %v are no system", y.elect, y.decide,
		y.rows, y.zones)
}

// Fits returns a [*FitError] unless the system is valid for a given number of voters and their zones: it has quorums,
// and those of the two phases intersect. zones has the zone of each voter, and is nil if none has one, or if that does
// not matter.
func (y System) Fits(voters int, zones []string) error {
	why, count := Why(0), distinct(zones)
	switch {
	case y.rows > voters, y.zones.Count > voters:
		why = TooFew
	case y.rows > 0 || y.zones.Count > 0 || y.Majority():
	case y.elect > voters || y.decide > voters:
		why = TooLarge
	case y.elect+y.decide <= voters:
		why = DoNotMeet
	}
	switch mixed := slices.Contains(zones, ""); {
	case why != 0 || y.zones.Count == 0 || count == 0:
	case mixed:
		why = NoZone
	case count != y.zones.Count:
		why = OtherZones
	}
	if why == 0 {
		return nil
	}
	return &FitError{y, voters, why, count}
}

// distinct is the number of zones with a name.
func distinct(zones []string) (n int) {
	for i, z := range zones {
		if z != "" && !slices.Contains(zones[:i], z) {
			n++
		}
	}
	return n
}

// Same reports whether voters have the same quorums: they are the same, and, where quorums are in a [Grid], in the
// same zones.
func (y System) Same(a, b Voters) bool {
	return slices.Equal(a.IDs, b.IDs) && (!y.grid(false).on() || slices.Equal(a.Zones, b.Zones))
}

// Carries reports whether every quorum of phase 2 of the old voters, without those that leave, intersects every
// quorum of phase 1 of the next ones. So every quorum of the next ones includes a member with the decisions of the
// old ones. A change of zones counts as a change of voters.
func (y System) Carries(old, next Voters) bool {
	switch {
	case y.rows > 0:
		columns, in := y.grid(false).columns(len(old.IDs)), y.grid(false).place(old.Zones)
		for i := range columns {
			if !y.meets(column(nil, old.IDs, in, i, columns), next) {
				return false
			}
		}
		return true
	case y.zones.Count > 0:
		return y.zonesCarry(old, next)
	}
	stay := y.Decides(Set{}).need(len(old.IDs))
	for _, id := range old.IDs {
		if !has(next.IDs, id) {
			stay--
		}
	}
	return stay+y.Elects(Set{}).need(len(next.IDs)) > len(next.IDs)
}

// Admits reports whether each member that is joining can become a voter, one after the other: the voters then have
// quorums that intersect, and if bodies are kept by those that decided, these carry them to the next voters.
func (y System) Admits(c *protocol.Config, bodies bool) bool {
	now := c.Clone()
	for i := range now.Members {
		if !now.Members[i].Joining {
			continue
		}
		before := VotersOf(&now)
		now.Members[i].Learner, now.Members[i].Joining = false, false
		after := VotersOf(&now)
		if y.Fits(len(after.IDs), after.Zones) != nil || bodies && !y.Carries(before, after) {
			return false
		}
	}
	return true
}

// Zone is the number of a voter's zone. Voters without a zone are in turns in those of quorums by zones; with other
// quorums each is in a zone of its own.
func (y System) Zone(v Voters, id protocol.MemberID) int {
	at, _ := slices.BinarySearch(v.IDs, id)
	switch {
	case at < len(v.Zones) && v.Zones[at] != "":
		return slices.Index(v.Zones, v.Zones[at])
	case y.zones.Count > 0 && len(v.Zones) == 0:
		return at % y.zones.Count
	}
	return at
}

// meets reports whether every electing quorum of the next voters includes one of these members.
func (y System) meets(decided []protocol.MemberID, next Voters) bool {
	return y.Elects(next.Set()).Covered(func(id protocol.MemberID) bool { return has(decided, id) })
}

// fewToTry is the number of voters in zones up to which all sets are tried. With more voters Carries reports false.
const fewToTry = 12

func (y System) zonesCarry(old, next Voters) bool {
	if len(old.IDs) > fewToTry {
		return false
	}
	decides := y.Decides(old.Set())
	var some []protocol.MemberID
	for mask := range 1 << len(old.IDs) {
		some = some[:0]
		for i, id := range old.IDs {
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
