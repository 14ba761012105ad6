package quorum

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/braidlog/braid/protocol"
)

// System says who elects a leader and who decides what it proposes, where these need not be equal: quorums of
// Paxos' phase 1 and phase 2 (docs/multi-paxos.md). Every quorum of phase 1 meets every
// quorum of phase 2. Two of the same phase need not meet. The zero System knows majorities only.
type System struct {
	// elect and decide are how many voters are a quorum of phase 1, and of phase 2; 0: a majority.
	elect, decide int
	// rows, if > 0, puts voters into a [Grid]: one of each column elects, and a whole column decides.
	rows int
}

// Sizes is the system in which any elect voters elect, and any decide voters decide.
func Sizes(elect, decide int) System { return System{elect: elect, decide: decide} }

// InGrid is the system of a grid with columns of at least so many voters.
func InGrid(rows int) System { return System{rows: rows} }

// Configured is the system that settings ask for. The error is a [*FitError].
func Configured(s *protocol.Settings) (System, error) {
	y := System{s.ReadQuorum, s.WriteQuorum, s.GridRows}
	if y.rows < 0 || y.elect < 0 || y.decide < 0 || (y.elect == 0) != (y.decide == 0) || y.rows > 0 && y.elect > 0 {
		return y, &FitError{System: y, Why: NoSystem}
	}
	return y, nil
}

// Parse reads what String writes: "majority", "ELECT/DECIDE" as in 4/2, "grid:ROWS" as in grid:2. "" are
// majorities too. The error is a [*TextError].
func Parse(text string) (System, error) {
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

const majorityText = "majority"

// number is 0 for what is no number of members.
func number(s string) int {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return 0
	}
	return int(n)
}

// TextError says that a text names no [System].
type TextError struct{ Text string }

func (e *TextError) Error() string {
	return fmt.Sprintf("quorums %q: want majority, ELECT/DECIDE as in 4/2, or grid:ROWS as in grid:2", e.Text)
}

func (y System) String() string {
	switch {
	case y.rows > 0:
		return "grid:" + strconv.Itoa(y.rows)
	case y.Majority():
		return majorityText
	}
	return fmt.Sprintf("%d/%d", y.elect, y.decide)
}

// Majority reports whether all quorums are majorities.
func (y System) Majority() bool { return y == System{} }

// Set asks for the system in settings.
func (y System) Set(s *protocol.Settings) {
	s.ReadQuorum, s.WriteQuorum, s.GridRows = y.elect, y.decide, y.rows
}

// Elects is which of a set's voters are a quorum of phase 1: they promise.
func (y System) Elects(s Set) Set {
	s.Need, s.Grid = y.elect, Grid{y.rows, true}
	return s
}

// Decides is which of a set's voters are a quorum of phase 2: they accept.
func (y System) Decides(s Set) Set {
	s.Need, s.Grid = y.decide, Grid{y.rows, false}
	return s
}

// Why is what is wrong with a system.
type Why uint8

// What may be wrong.
const (
	// NoSystem: the numbers ask for more than one system, or are negative, or one is missing.
	NoSystem Why = 1 + iota
	// TooLarge: more voters are to elect or to decide than there are.
	TooLarge
	// DoNotMeet: there are voters that elect and others that decide.
	DoNotMeet
	// TooFew: there are fewer voters than a column has.
	TooFew
)

// FitError says why a system does not do for so many voters. Nothing was started or changed.
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
		return fmt.Sprintf("quorums %s: of %d voters, %d can elect a leader that hears of nobody among the %d that decide; the sum has to be more than %d",
			y, e.Voters, y.elect, y.decide, e.Voters)
	case TooFew:
		return fmt.Sprintf("quorums %s: %d voters are no column of %d", y, e.Voters, y.rows)
	}
	return fmt.Sprintf("quorums: %d elect, %d decide and %d rows are no system", y.elect, y.decide, y.rows)
}

// Fits reports whether the system does for so many voters, with a [*FitError] if not: then there are quorums, and
// those of the two phases meet.
func (y System) Fits(voters int) error {
	why := Why(0)
	switch {
	case y.rows > voters:
		why = TooFew
	case y.rows > 0 || y.Majority():
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

// Carries reports whether every quorum of phase 2 of the old voters, without those that leave, meets every quorum of
// phase 1 of the next ones. So whoever is elected by the next ones meets somebody that has what the old ones decided.
func (y System) Carries(old, next []protocol.MemberID) bool {
	if y.rows > 0 {
		columns := y.grid().columns(len(old))
		elects := y.Elects(Set{Incoming: next})
		for i := range columns {
			decided := column(nil, old, i, columns)
			if !elects.Covered(func(id protocol.MemberID) bool { return has(decided, id) }) {
				return false
			}
		}
		return true
	}
	stay := y.Decides(Set{}).need(len(old))
	for _, id := range old {
		if !has(next, id) {
			stay--
		}
	}
	return stay+y.Elects(Set{}).need(len(next)) > len(next)
}

func (y System) grid() Grid { return Grid{Rows: y.rows} }
