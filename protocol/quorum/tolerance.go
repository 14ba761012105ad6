package quorum

import (
	"fmt"
	"slices"
)

// Tolerance is what a [System] tolerates with a given number of voters.
type Tolerance struct {
	System System
	Voters int
	// Decide is the number of voters that may be down, in any combination, while a leader that is up still decides.
	Decide int
	// Heal is the number that may be down, in any combination, while another leader can still be elected: the crashes
	// that the cluster tolerates, leaders included.
	Heal int
}

// Tolerates returns the tolerance of the system, which must fit the given number of voters and their zones. zones is
// nil if they have none.
func (y System) Tolerates(voters int, zones []string) Tolerance {
	t := Tolerance{System: y, Voters: voters}
	if y.grid(false).on() {
		t.Decide, t.Heal = y.grid(false).tolerates(voters, zones), y.grid(true).tolerates(voters, zones)
		return t
	}
	t.Decide, t.Heal = voters-y.Decides(Set{}).need(voters), voters-y.Elects(Set{}).need(voters)
	return t
}

// tolerates is the number of these voters that may be down, in any combination: one less than leaves too few columns,
// the weakest ones first.
func (g Grid) tolerates(voters int, zones []string) int {
	columns, in := g.columns(voters), g.place(zones)
	sizes := make([]int, columns)
	for i := range voters {
		if in == nil {
			sizes[i%columns]++
		} else if int(in[i]) < columns {
			sizes[in[i]]++
		}
	}
	var costs []int // of each column, until it is dead
	for _, of := range sizes {
		costs = append(costs, of-g.need(of)+1)
	}
	slices.Sort(costs)
	down := -1
	for _, cost := range costs[:columns-g.of(columns)+1] {
		down += cost
	}
	return down
}

// Survives is the number of voters that may crash, in any combination, without losing an acknowledged write and with
// the others still serving.
func (t Tolerance) Survives() int { return min(t.Decide, t.Heal) }

// Promised is the number of crashes that majorities tolerate.
func (t Tolerance) Promised() int { return t.Voters - Size(t.Voters) }

// Less reports whether that is less than majorities tolerate.
func (t Tolerance) Less() bool { return t.Survives() < t.Promised() }

// String describes the tolerance for operators.
func (t Tolerance) String() string {
	text := fmt.Sprintf("quorums %s of %d voters: a leader goes on while %d of them are down, and is replaced while "+
		"%d are",
		t.System, t.Voters, t.Decide, t.Heal)
	if t.Less() {
		text += fmt.Sprintf("; the cluster survives any %d of the %d crashes that majorities survive", t.Survives(),
			t.Promised())
	}
	return text
}
