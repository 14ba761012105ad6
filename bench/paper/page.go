package paper

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

//go:embed page.html
var pageSource string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"number": number, "label": Metric.label, "json": asJSON,
}).Parse(pageSource))

// asJSON writes a value as indented JSON.
func asJSON(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

// section is an experiment on the page.
type section struct {
	*Result
	Def    *Experiment
	Claims []claimRow
	Plots  []plotBox
	Rows   []tableRow
}

type claimRow struct {
	Claim, Note, Paper, Measured, Verdict string
}

type plotBox struct {
	SVG     template.HTML
	Caption string
}

type tableRow struct {
	Series string
	First  bool // of its series
	X      float64
	Of     string // the meaning of X
	Count  int
	Cells  []Figure
	Known  []bool
}

// writePage writes a self-contained page.
func writePage(w io.Writer, results []*Result) error {
	var sections []section
	counts, claims := map[string]int{}, 0
	for _, r := range results {
		s := section{Result: r, Def: r.e, Rows: r.rows()}
		for i := range r.Claims {
			j, verdict := &r.Claims[i], r.verdict(&r.Claims[i])
			claims++
			counts[verdict]++
			s.Claims = append(s.Claims, claimRow{j.Claim + j.modelNote(), r.e.noteOf(j.Claim),
				withUnit(j.Paper, cmp.Or(j.PaperUnit, j.Unit)), withUnit(j.Measured, j.Unit), verdict})
		}
		for i := range r.e.Plots {
			p := &r.e.Plots[i]
			// SVG escaped everything in the picture.
			s.Plots = append(s.Plots, plotBox{SVG: template.HTML(p.SVG(r)), Caption: p.Caption}) //nolint:gosec
		}
		sections = append(sections, s)
	}
	return pageTemplate.Execute(w, map[string]any{"Sections": sections, "Claims": claims, "Holds": counts[verdictHolds],
		"Unjudged": counts[verdictNone] + counts[verdictMissing]})
}

// noteOf returns the note of a claim.
func (e *Experiment) noteOf(claim string) string {
	i := slices.IndexFunc(e.Claims, func(c Claim) bool { return c.Text == claim })
	if i < 0 {
		return ""
	}
	return e.Claims[i].note()
}

// rows lists the figures of the table's metrics.
func (r *Result) rows() []tableRow {
	var rows []tableRow
	for _, s := range r.Series {
		if s.Paper {
			continue
		}
		for i, p := range s.Points {
			row := tableRow{Series: s.Name, First: i == 0, X: p.X, Of: s.X, Count: p.Count}
			for _, m := range r.e.Table {
				f, ok := p.Figures[m]
				row.Cells, row.Known = append(row.Cells, f), append(row.Known, ok)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// Where describes the machine in one line, and its load by others.
func (m Machine) Where() string {
	parts := []string{m.CPU, plural(m.Cores, "core"), m.Kernel, m.Filesystem, m.Go}
	if m.StolenPercent+m.OthersPercent > 0 {
		parts = append(parts, fmt.Sprintf("of the CPU %.1f %% stolen by the host, %.1f %% used by others", m.StolenPercent,
			m.OthersPercent))
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " · ")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return number(float64(n)) + " " + what + "s"
}
