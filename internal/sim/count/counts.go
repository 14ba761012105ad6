package count

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Counts says how often each counter counted. The zero value has counted nothing. It is not for several
// goroutines at once.
type Counts struct {
	n []int // by a counter's index; counters beyond its end have counted nothing
}

// Add counts n times.
func (s *Counts) Add(c *Counter, n int) {
	if c.index >= len(s.n) {
		s.n = append(s.n, make([]int, len(counters)-len(s.n))...)
	}
	s.n[c.index] += n
}

// Of returns how often a counter counted.
func (s *Counts) Of(c *Counter) int {
	if c.index >= len(s.n) {
		return 0
	}
	return s.n[c.index]
}

// Merge adds what o has counted.
func (s *Counts) Merge(o *Counts) {
	for i, n := range o.n {
		s.Add(counters[i], n)
	}
}

// MarshalJSON returns an object with the name of each counter, by name.
func (s Counts) MarshalJSON() ([]byte, error) {
	named := make(map[string]int, len(counters))
	for _, c := range counters {
		named[c.Name] = s.Of(c)
	}
	return json.Marshal(named) // with the keys in order
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
