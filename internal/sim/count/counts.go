package count

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Counts has the number of events of each counter. The zero value has none. It is not safe for concurrent use.
type Counts struct {
	n []int // by a counter's index; counters after its end have no events
}

// Add counts n events.
func (s *Counts) Add(c *Counter, n int) {
	if c.index >= len(s.n) {
		s.n = append(s.n, make([]int, len(counters)-len(s.n))...)
	}
	s.n[c.index] += n
}

// Of returns the number of events of a counter.
func (s *Counts) Of(c *Counter) int {
	if c.index >= len(s.n) {
		return 0
	}
	return s.n[c.index]
}

// Merge adds the events of o.
func (s *Counts) Merge(o *Counts) {
	for i, n := range o.n {
		s.Add(counters[i], n)
	}
}

// MarshalJSON returns an object with the events of each counter, sorted by name.
func (s Counts) MarshalJSON() ([]byte, error) {
	named := make(map[string]int, len(counters))
	for _, c := range counters {
		named[c.Name] = s.Of(c)
	}
	return json.Marshal(named) // with sorted keys
}

// String lists the counters by name.
func (s Counts) String() string {
	var b strings.Builder
	for i, c := range All() {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d %s", s.Of(c), c.Text)
	}
	return b.String()
}
