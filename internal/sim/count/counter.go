package count

import (
	"fmt"
	"slices"
	"strings"
)

// Needs are the runs in which an event is frequent.
type Needs int

const (
	Any      Needs = iota // most runs
	Staged                // scenarios, or runs of one protocol: random runs hardly ever do
	Coded                 // a protocol that codes bodies
	Merged                // a protocol that merges the logs of several instances
	Bodiless              // runs without bodies
	Zoned                 // quorums by zones
)

// Counter counts a kind of event in runs. It is declared once, with [New], next to the code that counts it.
type Counter struct {
	// Name is the key in a campaign's JSON. Text is the one of the printed summary.
	Name, Text string
	Needs      Needs
	index      int
}

// counters are all counters, in the order in which they were declared.
var counters []*Counter

// New declares a counter. It is for package variables: it panics if another counter has the same name or text, and
// must not be called concurrently with another use of the package. Without needs, most runs count it.
func New(name, text string, needs ...Needs) *Counter {
	for _, c := range counters {
		if c.Name == name || c.Text == text {
			panic(fmt.Sprintf("count: two counters are named %q, %q", name, text))
		}
	}
	c := &Counter{Name: name, Text: text, index: len(counters)}
	for _, n := range needs {
		c.Needs = n
	}
	counters = append(counters, c)
	return c
}

// All returns all counters, by name.
func All() []*Counter {
	all := slices.Clone(counters)
	slices.SortFunc(all, func(a, b *Counter) int { return strings.Compare(a.Name, b.Name) })
	return all
}
