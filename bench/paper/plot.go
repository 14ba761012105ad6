package paper

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Size of a plot; pictures scale with the page.
const (
	plotWidth   = 760.0
	plotHeight  = 330.0 // of the area between the axes
	marginLeft  = 74.0  // at least
	labelLeft   = 40.0  // of that for the axis' own label and the gaps around the ticks' labels
	marginRight = 36.0
	headHeight  = 34.0
	rowHeight   = 20.0 // of the legend
	footHeight  = 52.0
	charWidth   = 6.5 // of small text, about
)

// style makes a picture readable on light and on dark pages, and alone. Colours are numbered c0 …; the paper's curves
// have the colour of our corresponding ones.
const style = `
.plot{--bg:#fff;--fg:#1f2328;--soft:#656d76;--grid:#e4e8ec;` +
	`--c0:#c2410c;--c1:#7c3aed;--c2:#0f766e;--c3:#2563eb;--c4:#be185d;` +
	`--c5:#a16207;--c6:#475569;--c7:#15803d;
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif;background:var(--bg)}
@media (prefers-color-scheme:dark){.plot{--bg:#14181d;--fg:#e6edf3;--soft:#9aa4af;--grid:#2a313a;` +
	`--c0:#fb923c;--c1:#b794f6;--c2:#2dd4bf;--c3:#60a5fa;--c4:#f472b6;--c5:#facc15;--c6:#a3b1c2;--c7:#4ade80}}
.plot text{fill:var(--fg);font-size:12px}.plot .title{font-size:15px;font-weight:600}.plot .soft{fill:var(--soft)}
.plot .grid{stroke:var(--grid)}.plot .axis{stroke:var(--soft)}.plot .back{fill:var(--bg)}
.plot .line{fill:none;stroke-width:2.2;stroke-linejoin:round}.plot .paper{stroke-dasharray:6 5;stroke-width:1.7}
.plot .model{stroke-dasharray:2 3;stroke-width:2.4}
.plot .range{stroke-width:1.4;opacity:.65}` +
	`.plot .dot{stroke:var(--bg);stroke-width:1.2}.plot .hollow{fill:var(--bg);stroke-width:1.6}
`

const (
	blue  = "var(--c3)" // braid's default
	plain = "var(--c6)" // bars that are not highlighted
)

// palette is the colours of the other series.
var palette = []string{"var(--c0)", "var(--c1)", "var(--c2)", "var(--c4)", "var(--c5)", "var(--c7)", plain}

// canvas is an SVG in progress.
type canvas struct{ strings.Builder }

func (c *canvas) put(format string, args ...any) { fmt.Fprintf(c, format+"\n", args...) }

func (c *canvas) text(x, y float64, class, anchor, text string) {
	c.put(`<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">%s</text>`, x, y, class, anchor, html.EscapeString(text))
}

func (c *canvas) line(x1, y1, x2, y2 float64, class, stroke string) {
	if stroke != "" {
		stroke = ` stroke="` + stroke + `"`
	}
	c.put(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"%s/>`, x1, y1, x2, y2, class, stroke)
}

// drawn is a series in a plot.
type drawn struct {
	name   string
	colour string
	paper  bool
	model  bool
	points []dot
}

// class is the style of its line.
func (d *drawn) class() string {
	switch {
	case d.paper:
		return "line paper"
	case d.model:
		return "line model"
	}
	return "line"
}

// dot is a point of a series: a figure and its range. In a trade-off, label is the text next to it.
type dot struct{ x, y, lo, hi, label float64 }

// SVG draws a plot of a result. Missing measurements are not drawn.
func (p *Plot) SVG(r *Result) string {
	series := p.collect(r)
	if p.Kind == Bars {
		return p.bars(series)
	}
	c := &canvas{}
	rows := legendRows(series)
	top := headHeight + rowHeight*float64(len(rows)) + 10
	height := top + plotHeight + footHeight
	p.open(c, height)
	legend(c, rows, p.Kind)
	x, y := p.scales(series)
	x.from, x.to = max(marginLeft, labelLeft+charWidth*longest(y.ticks())), plotWidth-marginRight
	y.from, y.to = top+plotHeight, top
	p.axes(c, x, y, series)
	p.marks(c, x, y, r)
	for i := range series {
		switch p.Kind {
		case Scatter:
			scatter(c, x, y, &series[i])
		case Tradeoff:
			p.tradeoff(c, x, y, &series[i])
		case Points:
			p.points(c, x, y, series, i)
		default:
			p.curve(c, x, y, series, i)
		}
	}
	c.put("</svg>")
	return c.String()
}

func (p *Plot) open(c *canvas, height float64) {
	c.put(`<svg xmlns="http://www.w3.org/2000/svg" class="plot" viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`,
		plotWidth, height, html.EscapeString(p.Title))
	c.put("<style>%s</style>", style)
	c.put(`<rect class="back" width="%.0f" height="%.0f"/>`, plotWidth, height)
	c.text(16, 23, "title", "start", p.Title)
}

// collect gathers the data of the plot.
func (p *Plot) collect(r *Result) []drawn {
	var out []drawn
	colour := r.e.colours()
	for _, s := range r.Series {
		if s.Paper || s.X != cmp.Or(p.Part, r.e.XName) || p.Series != nil && !slices.Contains(p.Series, s.Name) {
			continue
		}
		if p.Kind == Scatter {
			out = append(out, p.groups(&s)...)
			continue
		}
		d := drawn{name: s.Name, colour: colour(s.Name), model: s.Model}
		if p.Kind == Bars && !slices.Contains(p.Accent, s.Name) {
			d.colour = plain
		}
		for _, pt := range s.Points {
			d.points = append(d.points, p.dots(&pt)...)
		}
		if len(d.points) > 0 {
			out = append(out, d)
		}
	}
	for _, q := range p.Paper {
		d := drawn{name: q.Name, colour: colour(q.Like), paper: true}
		for i := range q.X {
			d.points = append(d.points, dot{x: q.X[i], y: q.Y[i]})
		}
		out = append(out, d)
	}
	return out
}

// colours assigns each series a colour; a modelled series has that of the measured one.
func (e *Experiment) colours() func(name string) string {
	var names []string
	for _, n := range e.seriesNames() {
		if n = strings.TrimPrefix(n, modelPrefix); !adapts(n) && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return func(name string) string {
		if adapts(name) {
			return blue
		}
		return palette[max(0, slices.Index(names, strings.TrimPrefix(name, modelPrefix)))%len(palette)]
	}
}

// adapts reports whether a series is braid as it is where it chooses by itself, which plots highlight.
func adapts(series string) bool { return series == adaptive || series == seriesFit }

// groups are the points of a series, each in a different colour.
func (p *Plot) groups(s *Series) (out []drawn) {
	for i, pt := range s.Points {
		d := drawn{name: s.X + " " + number(pt.X), colour: palette[i%len(palette)], points: p.dots(&pt)}
		if len(d.points) > 0 {
			out = append(out, d)
		}
	}
	return out
}

// dots are the dots of a point in the plot.
func (p *Plot) dots(pt *Point) (out []dot) {
	f, ok := pt.Figures[p.Y]
	switch {
	case !ok:
	case p.Kind == Scatter:
		for i := range min(len(pt.Runs[p.X]), len(pt.Runs[p.Y])) {
			out = append(out, dot{x: pt.Runs[p.X][i], y: pt.Runs[p.Y][i]})
		}
	case p.Kind == Tradeoff:
		out = append(out, dot{x: pt.Figures[p.X].Median, y: f.Median, label: pt.X})
	default:
		out = append(out, dot{pt.X, f.Median, f.Low, f.High, 0})
	}
	return out
}

func (p *Plot) scales(series []drawn) (x, y axis) {
	var xs, ys []float64
	for _, s := range series {
		for _, d := range s.points {
			if !constant(&s, series) {
				xs = append(xs, d.x)
			}
			ys = append(ys, d.y)
			if d.hi > 0 {
				ys = append(ys, d.lo, d.hi)
			}
		}
	}
	if len(xs) == 0 {
		xs = []float64{0, 1}
	}
	switch p.Kind {
	case Lines:
		return around(xs, p.LogX), newAxis(ys, p.LogY)
	case Points:
		const half = 0.5 // of the distance between two x
		return axis{lo: slices.Min(xs) - half, hi: slices.Max(xs) + half}, newAxis(ys, p.LogY)
	}
	return newAxis(xs, p.LogX), newAxis(ys, p.LogY)
}

// constant reports whether a series does not depend on x: it has one point, others more. A paper may give one point of
// a curve.
func constant(s *drawn, all []drawn) bool {
	return len(s.points) == 1 && !s.paper && slices.ContainsFunc(all, func(o drawn) bool { return len(o.points) > 1 })
}

func (p *Plot) axes(c *canvas, x, y axis, series []drawn) {
	for _, v := range y.ticks() {
		at := y.at(v)
		c.line(x.from, at, x.to, at, "grid", "")
		c.text(x.from-8, at+4, "soft", "end", number(v))
	}
	ticks := p.xTicks(x, series)
	for _, v := range ticks {
		c.line(x.at(v), y.from, x.at(v), y.from+5, "axis", "")
	}
	for _, v := range labelled(x, ticks, p.xName) {
		c.text(x.at(v), y.from+20, "soft", "middle", p.xName(v))
	}
	c.line(x.from, y.from, x.to, y.from, "axis", "")
	c.text((x.from+x.to)/2, y.from+42, "soft", "middle", p.xLabel())
	c.put(`<text class="soft" text-anchor="middle" transform="translate(18 %.1f) rotate(-90)">%s</text>`, (y.from+y.to)/2,
		html.EscapeString(p.Y.label()))
}

// longest is the number of characters of the longest label.
func longest(ticks []float64) (n float64) {
	for _, v := range ticks {
		n = max(n, float64(utf8.RuneCountInString(number(v))))
	}
	return n
}

// xName is the label of a tick on the x axis.
func (p *Plot) xName(v float64) string {
	if i := int(v) - 1; i >= 0 && i < len(p.Names) {
		return p.Names[i]
	}
	return number(v)
}

// labelled are the ticks whose labels do not touch one another, from the lowest on.
func labelled(x axis, ticks []float64, name func(float64) string) (out []float64) {
	const gap = 8
	end := math.Inf(-1)
	for _, v := range slices.Sorted(slices.Values(ticks)) {
		half := charWidth * float64(utf8.RuneCountInString(name(v))) / 2
		if at := x.at(v); at-half >= end+gap {
			out, end = append(out, v), at+half
		}
	}
	return out
}

func (p *Plot) xLabel() string {
	if p.XLabel == "" {
		return p.X.label()
	}
	return p.XLabel
}

// xTicks are the x of the points themselves if there are few.
func (p *Plot) xTicks(x axis, series []drawn) []float64 {
	if p.Kind != Lines && p.Kind != Points {
		return x.ticks()
	}
	var xs []float64
	for i := range series {
		for _, d := range series[i].points {
			if !constant(&series[i], series) && !slices.Contains(xs, d.x) {
				xs = append(xs, d.x)
			}
		}
	}
	const few = 10
	if len(xs) > few && p.Kind == Lines {
		return x.ticks()
	}
	return xs
}

// curve draws the i-th series as a line, with the range of its rounds unless it is plain. A line that others cover for
// a part of its way is wider than these, so that it shows on both sides of them.
func (p *Plot) curve(c *canvas, x, y axis, series []drawn, i int) {
	s := &series[i]
	points := slices.Clone(s.points)
	slices.SortFunc(points, func(a, b dot) int { return cmp.Compare(a.x, b.x) })
	var path strings.Builder
	for i, d := range points {
		fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(i, 1)], x.at(d.x), y.at(d.y))
	}
	if only := points[0]; len(points) == 1 && !s.paper {
		fmt.Fprintf(&path, "M%.1f %.1fL%.1f %.1f", x.from, y.at(only.y), x.to, y.at(only.y))
		points[0].x = x.lo + (x.hi-x.lo)/2
		if x.log {
			points = nil
		}
	}
	const most = 2 // of many lines at one place it shows the first ones
	wider := 4 * float64(min(most, covers(x, y, series[i+1:], s)))
	width := ""
	if wider > 0 {
		width = fmt.Sprintf(` style="stroke-width:%.1f"`, 2.2+wider)
	}
	c.put(`<path class="%s" stroke="%s"%s d="%s"/>`, s.class(), s.colour, width, path.String())
	if p.Plain {
		return
	}
	for _, d := range points {
		p.dot(c, s, d, x.at(d.x), y, wider/2)
	}
}

// covers counts the series that would cover another one for a part of its way: two of its points, or its only one, are
// at the same places.
func covers(x, y axis, later []drawn, s *drawn) (n int) {
	const near = 3.0 // about the width of a line
	for i := range later {
		same := 0
		for _, d := range s.points {
			if slices.ContainsFunc(later[i].points, func(o dot) bool {
				return math.Abs(x.at(o.x)-x.at(d.x)) < near && math.Abs(y.at(o.y)-y.at(d.y)) < near
			}) {
				same++
			}
		}
		if same >= min(2, len(s.points)) {
			n++
		}
	}
	return n
}

// points draws the i-th series as dots, next to those of the others at the same x.
func (p *Plot) points(c *canvas, x, y axis, series []drawn, i int) {
	const most = 22.0 // between two dots
	apart := min(most, 0.8*(x.at(1)-x.at(0))/float64(len(series)))
	for _, d := range series[i].points {
		p.dot(c, &series[i], d, x.at(d.x)+apart*(float64(i)-float64(len(series)-1)/2), y, 0)
	}
}

// dot draws a point of a series at a place of the x axis, with the range of its rounds.
func (p *Plot) dot(c *canvas, s *drawn, d dot, px float64, y axis, larger float64) {
	py := y.at(d.y)
	if d.hi > d.lo {
		c.line(px, y.at(d.lo), px, y.at(d.hi), "range", s.colour)
		c.line(px-4, y.at(d.lo), px+4, y.at(d.lo), "range", s.colour)
		c.line(px-4, y.at(d.hi), px+4, y.at(d.hi), "range", s.colour)
	}
	hint := fmt.Sprintf("%s, %s %s: %s %s", s.name, p.xLabel(), p.xName(d.x), p.Y.label(), number(d.y))
	if s.paper {
		c.put(`<circle class="hollow" cx="%.1f" cy="%.1f" r="%.1f" stroke="%s"><title>%s</title></circle>`, px, py,
			3.2+larger, s.colour, html.EscapeString(hint))
		return
	}
	hint += fmt.Sprintf(" (%s – %s)", number(d.lo), number(d.hi))
	c.put(`<circle class="dot" cx="%.1f" cy="%.1f" r="%.1f" fill="%s"><title>%s</title></circle>`, px, py, 4.2+larger,
		s.colour, html.EscapeString(hint))
}

// tradeoff draws a series as a line through its medians, each labelled with its x.
func (p *Plot) tradeoff(c *canvas, x, y axis, s *drawn) {
	var path strings.Builder
	for i, d := range s.points {
		fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(i, 1)], x.at(d.x), y.at(d.y))
	}
	c.put(`<path class="line" stroke="%s" d="%s"/>`, s.colour, path.String())
	for _, d := range s.points {
		px, py := x.at(d.x), y.at(d.y)
		hint := fmt.Sprintf("%s, %s %s: %s %s, %s %s", s.name, number(d.label), p.Part, number(d.x), p.X.label(), p.Y.label(),
			number(d.y))
		c.put(`<circle class="dot" cx="%.1f" cy="%.1f" r="4.2" fill="%s"><title>%s</title></circle>`, px, py,
			s.colour, html.EscapeString(hint))
		if !p.Bare {
			c.text(px+7, py-7, "soft", "start", number(d.label))
		}
	}
}

// scatter draws the runs of a series as dots.
func scatter(c *canvas, x, y axis, s *drawn) {
	for _, d := range s.points {
		hint := fmt.Sprintf("%s: %s, %s", s.name, number(d.x), number(d.y))
		c.put(`<circle class="dot" cx="%.1f" cy="%.1f" r="4" fill="%s" fill-opacity=".8"><title>%s</title></circle>`,
			x.at(d.x), y.at(d.y), s.colour, html.EscapeString(hint))
	}
}

// legendRows breaks the names of the series into rows.
func legendRows(series []drawn) [][]drawn {
	var rows [][]drawn
	used := 0.0
	for _, s := range series {
		w := legendWidth(s.name)
		if len(rows) == 0 || used+w > plotWidth-32 {
			rows, used = append(rows, nil), 0
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], s)
		used += w
	}
	return rows
}

func legendWidth(name string) float64 { return 50 + charWidth*float64(len([]rune(name))) }

func legend(c *canvas, rows [][]drawn, kind PlotKind) {
	for i, row := range rows {
		x, y := 16.0, headHeight+rowHeight*float64(i)+9
		for _, s := range row {
			class := s.class()
			if kind != Scatter && kind != Points {
				c.line(x, y, x+26, y, class, s.colour)
			}
			if s.paper {
				c.put(`<circle class="hollow" cx="%.1f" cy="%.1f" r="3" stroke="%s"/>`, x+13, y, s.colour)
			} else {
				c.put(`<circle class="dot" cx="%.1f" cy="%.1f" r="4" fill="%s"/>`, x+13, y, s.colour)
			}
			c.text(x+32, y+4, "", "start", s.name)
			x += legendWidth(s.name)
		}
	}
}
