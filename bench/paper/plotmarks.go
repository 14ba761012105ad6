package paper

import (
	"cmp"
	"fmt"
	"html"
	"strings"
)

// marks draws the events on a timeline: a vertical line with its number at the begin of each phase, and a triangle on
// the axis for each change, with a text if its series is an accented one.
func (p *Plot) marks(c *canvas, x, y axis, r *Result) {
	colour := r.e.colours()
	part := cmp.Or(p.Part, r.e.XName)
	texts := 0
	for _, m := range r.Marks {
		if m.Part != part {
			continue
		}
		at := x.at(m.X)
		if m.Phase {
			c.line(at, y.from, at, y.to, "axis", "")
			number, _, _ := strings.Cut(m.Text, ":")
			c.put(`<text x="%.1f" y="%.1f" class="soft" text-anchor="start">%s<title>%s</title></text>`, at+4, y.to+12,
				html.EscapeString(number), html.EscapeString(m.Text))
			continue
		}
		stroke := colour(m.Series)
		hint := fmt.Sprintf("%s, %s s: %s", m.Series, number(m.X), m.Text)
		if m.Why != "" {
			hint += ": " + m.Why
		}
		c.put(`<path d="M%.1f %.1fl-5 9h10z" fill="%s"><title>%s</title></path>`, at, y.from-9, stroke,
			html.EscapeString(hint))
		if adapts(m.Series) {
			const rows = 4 // texts of changes that are close must not cover each other
			c.line(at, y.from-9, at, y.from-24-14*float64(texts%rows), "range", stroke)
			c.text(at+3, y.from-26-14*float64(texts%rows), "", "start", m.Text)
			texts++
		}
	}
}
