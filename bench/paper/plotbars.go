package paper

import (
	"fmt"
	"html"
)

// bars draws a bar for each series, with its figure at the end and the range of the rounds.
func (p *Plot) bars(series []drawn) string {
	const (
		barHeight, step = 18.0, 30.0
		valueWidth      = 130.0
	)
	c := &canvas{}
	top := headHeight + 12
	height := top + step*float64(len(series)) + footHeight
	p.open(c, height)
	var values []float64
	longest := 0
	for _, s := range series {
		d := s.points[0]
		values = append(values, d.lo, d.hi, d.y)
		longest = max(longest, len([]rune(s.name)))
	}
	x := newAxis(values, p.LogX)
	x.from, x.to = 28+charWidth*float64(longest), plotWidth-marginRight-valueWidth
	bottom := top + step*float64(len(series))
	for _, v := range x.ticks() {
		c.line(x.at(v), top, x.at(v), bottom, "grid", "")
	}
	for _, v := range labelled(x, x.ticks(), number) {
		c.text(x.at(v), bottom+18, "soft", "middle", number(v))
	}
	c.text((x.from+x.to)/2, bottom+40, "soft", "middle", p.Y.label())
	for i, s := range series {
		d, y := s.points[0], top+step*float64(i)+(step-barHeight)/2
		mid := y + barHeight/2
		c.text(x.from-8, mid+4, "", "end", s.name)
		hint := fmt.Sprintf("%s: %s (%s – %s)", s.name, number(d.y), number(d.lo), number(d.hi))
		c.put(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2" `+
			`fill="%s" fill-opacity=".85"><title>%s</title></rect>`,
			x.from, y, max(1, x.at(d.y)-x.from), barHeight, s.colour, html.EscapeString(hint))
		if d.hi > d.lo {
			c.line(x.at(d.lo), mid, x.at(d.hi), mid, "axis", "")
			c.line(x.at(d.lo), mid-4, x.at(d.lo), mid+4, "axis", "")
			c.line(x.at(d.hi), mid-4, x.at(d.hi), mid+4, "axis", "")
		}
		c.text(max(x.at(d.y), x.at(d.hi))+8, mid+4, "", "start", number(d.y))
	}
	c.line(x.from, top, x.from, bottom, "axis", "")
	c.put("</svg>")
	return c.String()
}
