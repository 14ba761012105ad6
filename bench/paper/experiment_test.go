package paper

import (
	"slices"
	"testing"
)

// plentiful returns every figure, all of them different.
type plentiful struct{ n float64 }

func (p *plentiful) sample() Sample {
	s := Sample{}
	for m := range labels {
		p.n++
		s[m] = 1 + p.n/1000
	}
	return s
}

// measureAll is a result with all measurements.
func measureAll(e *Experiment, quick bool) *Result {
	cases := e.cases(quick)
	r := newResult(e, cases, Config{Quick: quick})
	figures := &plentiful{}
	for i := range cases {
		for range 4 {
			r.add(&cases[i], figures.sample())
			if part := cases[i].Work.timeline(); part != "" {
				r.addMoments(&cases[i], []Moment{{1, part, figures.sample()}})
			}
			for phase := range cases[i].Work.phases() {
				r.addMoments(&cases[i], []Moment{{float64(phase + 1), "", figures.sample()}})
			}
		}
	}
	r.finish(4)
	return r
}

// Metrics in an experiment's claims, plots and tables must be measured, in quick mode too.
func TestExperimentsAreConsistent(t *testing.T) {
	for _, e := range Experiments() {
		for _, quick := range []bool{false, true} {
			r := measureAll(e, quick)
			if len(r.Claims) == 0 || len(e.Plots) == 0 || len(e.Text) == 0 || e.Short == "" || e.QuickRounds == 0 {
				t.Errorf("%s lacks claims, plots, text or rounds", e.Name)
			}
			for _, c := range r.Claims {
				if c.Measured == nil {
					t.Errorf("%s (quick %v): claim %q needs what is not measured", e.Name, quick, c.Claim)
				}
			}
			for i := range e.Plots {
				checkPlot(t, r, &e.Plots[i])
			}
		}
	}
}

func checkPlot(t *testing.T, r *Result, p *Plot) {
	t.Helper()
	series := p.collect(r)
	if len(series) == 0 {
		t.Errorf("%s: plot %q shows nothing", r.Experiment, p.Title)
	}
	names := r.e.seriesNames()
	for _, name := range slices.Concat(p.Series, p.Accent) {
		if !slices.Contains(names, name) {
			t.Errorf("%s: plot %q names the series %q, which does not exist", r.Experiment, p.Title, name)
		}
	}
	for _, c := range p.Paper {
		if !slices.Contains(names, c.Like) || len(c.X) != len(c.Y) {
			t.Errorf("%s: the paper's curve %q belongs to no series or is not whole", r.Experiment, c.Name)
		}
	}
}

// No two cases may be the same point, and a cluster must start with the settings.
func TestCasesAreDistinct(t *testing.T) {
	type place struct {
		series, part string
		x            float64
		quick        bool
	}
	for _, e := range Experiments() {
		seen := map[place]bool{}
		for _, c := range e.Cases {
			p := place{c.Series, c.Part, c.X, c.Quick}
			if seen[p] {
				t.Errorf("%s: %+v is measured twice", e.Name, p)
			}
			seen[p] = true
			if !sensible(&c) {
				t.Errorf("%s: %+v makes no sense", e.Name, c)
			}
		}
	}
}

func sensible(c *Case) bool {
	w, s := &c.Work, &c.Setup
	if _, err := s.options(); err != nil || s.NoPipeline && s.Depth > 1 || s.HTTP && (s.Processes || w.For == 0) ||
		w.Writes > 0 && !s.HTTP ||
		s.Bare && (!s.HTTP || w.Clients == 0) || w.KeySpace > 0 && (s.HTTP || w.Blind > 0 || w.Payload < 2*numberBytes ||
		w.KeySpace < keyGroups || !s.Model && s.Members > keyGroups) {
		return false
	}
	if d := w.Day; d != nil {
		return w.Requests == 0 && w.For == 0 && s.Positions && !s.Processes && d.After < d.Length && d.Every > 0 &&
			d.Part != "" && !slices.ContainsFunc(d.Phases, func(p Phase) bool {
			return p.Clients == 0 || len(p.Sizes) == 0 || slices.Max(append(p.At, 1)) > s.Members
		})
	}
	switch {
	case w.For > 0 && (w.Requests > 0 || w.Reads > 0):
		return false
	case w.Readers > 0:
		return w.For > 0 && w.Clients == 0 && w.Rate == 0 && w.Down == 0 && s.Keys > 0 && w.Payload > 8
	case w.Blind < 0 || w.Blind > 1 || w.Of > s.Members || w.Leader > s.Members || w.At == AtLeader && w.Of > 0:
		return false
	case w.Faults != nil:
		f := w.Faults
		return s.Processes && (w.Clients > 0) != (w.Rate > 0) && w.Down == 0 && (f.Down > 0) == (f.Back > 0) && f.Every > 0 &&
			f.Part != "" &&
			f.Down <= f.Back && f.Back < f.Lead && f.Lead < w.For && (f.Return == 0 || f.Lead < f.Return && f.Return < w.For)
	case w.For > 0 && w.Rate > 0:
		return w.Clients == 0 && w.Down == 0 && w.Body == 0
	case w.For > 0:
		return w.Clients > 0 && w.Down < max(1, s.Members)
	}
	return w.Requests > 0 && w.Clients <= w.Requests && w.Down == 0 && (w.Reads == 0 || w.Body > 0)
}

func TestMeasures(t *testing.T) {
	e := &Experiment{XName: "x", Cases: []Case{{Series: "a", X: 1}, {Series: "a", X: 2}, {Series: "b", X: 1},
		{Series: "b", X: 2}}}
	r := newResult(e, e.Cases, Config{})
	for i, runs := range [][]float64{{10, 12, 11, 13}, {20, 20, 20, 20}, {5, 30, 5, 30}, {6, 31, 6, 31}} {
		for k, v := range runs {
			r.add(&e.Cases[i], Sample{Runtime: v, SyncTime: float64(k)})
		}
	}
	r.finish(4)
	a1, a2, b1, b2 := where{series: "a", x: 1}, where{series: "a", x: 2}, where{series: "b", x: 1},
		where{series: "b", x: 2}
	for _, c := range []struct {
		name string
		f    measure
		want float64
	}{
		{"times", times(Runtime, a2, a1), 20 / 11.5},
		{"quietly", quietly(Runtime, a2, a1), 20 / 10.75},
		{"growth", growth(Runtime, "a", "b", 1, 2), 8.5},
		{"spreadOver", spreadOver(Runtime, a1, a2), 20 / 10.75},
		// Even runs choose b at 1 (5), odd ones compare: 12.5 with 30.
		{"againstBest", againstBest(Runtime, a1, b1, b2), 12.5 / 30},
		{"explained", explained(Runtime, SyncTime, a1), 64},
		{"worst", worst(Runtime, "a", "b", "", 1, 2, 3), 20 / 18.5},
		{"worstQuiet", worstQuiet(Runtime, "a", "b", "", 1, 2, 3), 20 / 6.},
		{"lessThan", lessThan(Runtime, "a", "b", "x", 1), 100 * (1 - 11.5/17.5)},
		{"peak", peak(Runtime, "a", "x", "b", ""), 20 / 18.5},
		{"figure", figure(Runtime, a1), 11.5},
		{"most", most(Runtime, "b", "", []float64{1, 2, 3}, a1), 18.5 / 11.5},
		{"apart", apart(Runtime, "a", "b", "", 1, 2, 3), 17.5 / 11.5},
		{"leastKnown", leastKnown(times(Runtime, a2, a1), times(Runtime, b2, a1), figure(P50, a1)), 18.5 / 11.5},
		{"least", least(times(Runtime, a2, a1), times(Runtime, b2, a1)), 18.5 / 11.5},
	} {
		if got, ok := c.f(r); !ok || got < c.want*0.999 || got > c.want*1.001 {
			t.Errorf("%s: %v (%v), want %v", c.name, got, ok, c.want)
		}
	}
	if _, ok := times(Runtime, a1, where{series: "c", x: 1})(r); ok {
		t.Error("a ratio to what was not measured")
	}
	for _, f := range []measure{
		worst(Runtime, "a", "b", "elsewhere", 1), peak(Runtime, "a", "", "c", ""), figure(P50, a1),
		most(Runtime, "c", "", []float64{1}, a1), leastKnown(figure(P50, a1)), least(),
		least(figure(Runtime, a1), figure(P50, a1)), figure(Runtime, where{series: "a", x: 3}),
	} {
		if v, ok := f(r); ok {
			t.Errorf("%v of what was not measured", v)
		}
	}
	if _, ok := explained(Runtime, SyncTime, a2)(r); ok {
		t.Error("a correlation with what does not vary")
	}
}
