package paper

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/internal/sim/scale"
)

// Result is the result of an experiment, as stored in JSON.
type Result struct {
	Experiment string   `json:"experiment"`
	Machine    Machine  `json:"machine"`
	Claims     []Judged `json:"claims"`
	Series     []Series `json:"series"`
	// Marks are events on timelines.
	Marks []Mark `json:"marks,omitempty"`
	// Costs are the costs in the cost model, if there is one: calibrated on this machine and fitted to some points of
	// this result.
	Costs *scale.Costs `json:"costs,omitempty"`

	e *Experiment
}

// Machine describes the machine, time and conditions of an experiment.
type Machine struct {
	bench.MachineInfo
	bench.CPUShares           // while the experiment ran
	Date            time.Time `json:"date"`
	Command         string    `json:"command,omitempty"`
	Quick           bool      `json:"quick"`
	Rounds          int       `json:"rounds"` // complete ones
	// Notes are deviations from the plan.
	Notes []string `json:"notes,omitempty"`
}

// Judged is a claim with our figure. Paper is null if the paper has no figure, Measured if a necessary measurement is
// missing, and Holds if there is no verdict, see [Result.Unjudged] and [Claim.Off].
type Judged struct {
	Claim     string   `json:"claim"`
	Paper     *float64 `json:"paper"`
	PaperUnit string   `json:"paper_unit,omitempty"` // if it is not Unit
	Measured  *float64 `json:"measured"`
	Unit      string   `json:"unit"`
	Holds     *bool    `json:"holds"`
	// ModelOff is how far the model is off that computed the figure. It is absent if the figure is measured, or if the
	// model was not compared.
	ModelOff *float64 `json:"model_off,omitempty"`

	passes bool // the figure confirms the claim, on any machine
}

// Verdicts about claims.
const (
	verdictHolds   = "holds"
	verdictNot     = "does not hold"
	verdictMissing = "not measured"
	verdictNone    = "no verdict"
)

// Unjudged returns the reason why the claims of a result have no verdict; "" if they have one. A verdict needs a full
// run on a machine that others did not use.
func (r *Result) Unjudged() string {
	m, why := &r.Machine, []string(nil)
	switch rounds := r.e.fullRounds(); {
	case m.Quick:
		why = append(why, "the run was quick")
	case m.Rounds < rounds:
		why = append(why, fmt.Sprintf("%d of %s are complete", m.Rounds, plural(rounds, "round")))
	}
	if load := m.Warning(); load != "" {
		why = append(why, load)
	}
	return strings.Join(why, "; ")
}

// verdict returns the verdict of a result about a claim.
func (r *Result) verdict(j *Judged) string {
	switch {
	case j.Measured == nil:
		return verdictMissing
	case r.Unjudged() != "" || j.Holds == nil:
		return verdictNone
	case *j.Holds:
		return verdictHolds
	}
	return verdictNot
}

// Series is one contestant over a range of x, or the paper's measurements.
type Series struct {
	Name   string  `json:"name"`
	Paper  bool    `json:"paper,omitempty"`
	Model  bool    `json:"model,omitempty"` // computed, not measured
	X      string  `json:"x"`               // the meaning of Point.X
	Points []Point `json:"points"`
}

// Point has the measurements at one x.
type Point struct {
	X       float64              `json:"x"`
	Count   int                  `json:"count,omitempty"` // of the runs
	Figures map[Metric]Figure    `json:"figures"`
	Runs    map[Metric][]float64 `json:"runs,omitempty"` // in the order in which they ran
}

// Figure is a median over the runs, with the quartiles, the lowest and the highest.
type Figure struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Low    float64 `json:"lower_quartile"`
	High   float64 `json:"upper_quartile"`
	Max    float64 `json:"max"`
}

func newResult(e *Experiment, cases []Case, c Config) *Result {
	r := &Result{Experiment: e.Name, e: e, Claims: []Judged{}}
	r.Machine.Date = time.Now().UTC().Truncate(time.Second)
	r.Machine.MachineInfo = bench.DescribeMachine(c.Dir)
	r.Machine.Quick, r.Machine.Command = c.Quick, c.Command
	for i := range cases {
		r.point(&cases[i])
	}
	return r
}

// point returns the point of a case, and creates it if it is new.
func (r *Result) point(c *Case) *Point {
	x := cmp.Or(c.Part, r.e.XName)
	i := slices.IndexFunc(r.Series, func(s Series) bool { return s.Name == c.Series && s.X == x && !s.Paper })
	if i < 0 {
		i = len(r.Series)
		r.Series = append(r.Series, Series{Name: c.Series, X: x, Model: c.Setup.Model})
	}
	s := &r.Series[i]
	k := slices.IndexFunc(s.Points, func(p Point) bool { return p.X == c.X })
	if k < 0 {
		k = len(s.Points)
		s.Points = append(s.Points, Point{X: c.X, Runs: map[Metric][]float64{}})
	}
	return &s.Points[k]
}

func (r *Result) add(c *Case, s Sample) {
	p := r.point(c)
	p.Count++
	for m, v := range s {
		p.Runs[m] = append(p.Runs[m], v)
	}
}

// addMoments adds the measurements of a run in each window of its time.
func (r *Result) addMoments(c *Case, moments []Moment) {
	at := *c
	for i := range moments {
		at.X, at.Part = moments[i].At, moments[i].Part
		r.add(&at, moments[i].Sample)
	}
}

// addMarks adds the events of a run. Those of all series are the same in each run.
func (r *Result) addMarks(c *Case, marks []Mark) {
	for _, m := range marks {
		if m.Phase {
			if !slices.Contains(r.Marks, m) {
				r.Marks = append(r.Marks, m)
			}
			continue
		}
		m.Series, m.Part, m.Run = c.Series, c.Work.timeline(), r.point(c).Count
		r.Marks = append(r.Marks, m)
	}
}

func (r *Result) note(text string) { r.Machine.Notes = append(r.Machine.Notes, text) }

// finish computes medians, checks the claims and adds the paper's figures.
func (r *Result) finish(rounds int) {
	r.Machine.Rounds = rounds
	for i := range r.Series {
		s := &r.Series[i]
		s.Points = slices.DeleteFunc(s.Points, func(p Point) bool { return p.Count == 0 })
		for k := range s.Points {
			p := &s.Points[k]
			p.Figures = map[Metric]Figure{}
			for m, runs := range p.Runs {
				p.Figures[m] = figureOf(runs)
			}
		}
	}
	r.Series = slices.DeleteFunc(r.Series, func(s Series) bool { return len(s.Points) == 0 })
	for i := range r.e.Claims {
		r.Claims = append(r.Claims, r.e.Claims[i].judge(r))
	}
	r.addPaper()
}

func (r *Result) addPaper() {
	for _, p := range r.e.Plots {
		for _, c := range p.Paper {
			s := Series{Name: c.Name, Paper: true, X: cmp.Or(p.Part, r.e.XName)}
			for i, x := range c.X {
				s.Points = append(s.Points, Point{X: x, Figures: map[Metric]Figure{p.Y: figureOf(c.Y[i : i+1])}})
			}
			r.Series = append(r.Series, s)
		}
	}
}

// at returns a point of a series of ours, nil if it was not measured.
func (r *Result) at(w where) *Point {
	x := cmp.Or(w.part, r.e.XName)
	for i := range r.Series {
		s := &r.Series[i]
		if s.Name != w.series || s.X != x || s.Paper {
			continue
		}
		for k := range s.Points {
			if s.Points[k].X == w.x {
				return &s.Points[k]
			}
		}
	}
	return nil
}

func (c *Claim) judge(r *Result) Judged {
	j := Judged{Claim: c.Text, Unit: c.Unit}
	if c.Paper != 0 {
		j.Paper = &c.Paper
	}
	if c.PaperUnit != c.Unit {
		j.PaperUnit = c.PaperUnit
	}
	if v, ok := c.Measure(r); ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
		j.Measured, j.passes = &v, c.Holds(v)
		if c.trusted(r, &j) && r.Unjudged() == "" {
			j.Holds = &j.passes
		}
	}
	return j
}

// trusted reports whether the model says what is measured, if it computed the claim's figure. It notes how far it is
// off.
func (c *Claim) trusted(r *Result, j *Judged) bool {
	if c.Off == nil {
		return true
	}
	off, ok := c.Off(r)
	if !ok {
		return false
	}
	j.ModelOff = &off
	return off <= mostOff
}

func figureOf(runs []float64) Figure {
	v := slices.Sorted(slices.Values(runs))
	return Figure{Median: between(v, 0.5), Min: v[0], Low: between(v, 0.25), High: between(v, 0.75), Max: v[len(v)-1]}
}

func median(values []float64) float64 { return between(slices.Sorted(slices.Values(values)), 0.5) }

// between is a quantile of ascending values, interpolated; NaN if there are none.
func between(v []float64, q float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	at := q * float64(len(v)-1)
	i := min(int(at), len(v)-1)
	next := v[min(i+1, len(v)-1)]
	return v[i] + (next-v[i])*(at-float64(i))
}
