package count

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
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

// String returns a table of the events that occurred, the most frequent first, and a list of those that did not.
func (s Counts) String() string {
	var b strings.Builder
	var none []string
	all := All()
	slices.SortStableFunc(all, func(x, y *Counter) int { return cmp.Compare(s.Of(y), s.Of(x)) })
	for _, c := range all {
		if s.Of(c) == 0 {
			none = append(none, c.Text)
			continue
		}
		fmt.Fprintf(&b, "%10d  %s\n", s.Of(c), c.Text)
	}
	if len(none) > 0 {
		writeList(&b, fmt.Sprintf("%10s ", "none:"), none)
	}
	return b.String()
}

// writeList writes a heading and texts, in lines of about 100 characters.
func writeList(b *strings.Builder, line string, texts []string) {
	const width = 100
	indent := strings.Repeat(" ", len(line))
	for i, text := range texts {
		if i < len(texts)-1 {
			text += ","
		}
		if len(line)+len(text) >= width {
			b.WriteString(line + "\n")
			line = indent
		}
		line += " " + text
	}
	b.WriteString(line + "\n")
}
