package diagram

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"slices"
	"strings"
)

// Diagram collects the lines of a trace in memory and draws them at the end. The zero value has none and keeps all
// rows. It is not safe for concurrent use.
type Diagram struct {
	// Keep selects rows by the lines of the trace that they stand for; nil: all rows are drawn.
	Keep func(line string) bool

	lines bytes.Buffer
}

// Write adds a part of the trace, which may end within a line. It never fails.
func (d *Diagram) Write(b []byte) (int, error) { return d.lines.Write(b) }

// Draw draws the lines that were written. A violation and what follows it are printed as they are. It returns the
// first error of the writer.
func (d *Diagram) Draw(to io.Writer) error {
	out := bufio.NewWriter(to)
	s := newStory()
	lines := strings.Split(strings.TrimRight(d.lines.String(), "\n"), "\n")
	end := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "VIOLATION") })
	if end < 0 {
		end = len(lines)
	}
	for _, line := range lines[:end] {
		if e, ok := read(line); ok {
			s.add(e)
		} else if len(s.rows) > 0 {
			s.more(line)
		}
	}
	out.WriteString(cut(lines[0], width) + "\n" + legend)
	d.draw(out, s)
	for _, line := range lines[end:] {
		out.WriteString(line + "\n")
	}
	return out.Flush()
}

// draw draws the rows of the story that are kept, in pages. The others still change the members' lines. Each page has
// the members that the trace names up to the page's end.
func (d *Diagram) draw(out *bufio.Writer, s *story) {
	p, members, drawn := newPicture(out), []string(nil), 0
	for page := range slices.Chunk(fold(s.settled(d.Keep)), often) {
		end := drawn + slices.Index(s.rows[drawn:], page[len(page)-1].first()) + 1
		members = join(members, s.rows[drawn:end])
		p.page(members)
		next := 0
		for _, r := range s.rows[drawn:end] {
			p.update(r)
			if r == page[next].first() {
				p.draw(page[next])
				next++
			}
		}
		drawn = end
	}
}

// join adds the members that rows name, in the order of their numbers.
func join(names []string, rows []*row) []string {
	for _, r := range rows {
		for _, name := range []string{r.from, r.to} {
			if name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	return names
}
