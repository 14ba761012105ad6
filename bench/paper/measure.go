package paper

import (
	"cmp"
	"math"
	"slices"
)

// Functions that compute the figures of claims.

// measure computes a claim's figure.
type measure = func(*Result) (float64, bool)

// where is a point of a series, of a part of the experiment if that is not empty.
type where struct {
	series string
	x      float64
	part   string
}

// times is the ratio of a figure at one point to that at another.
func times(m Metric, one, other where) measure {
	return func(r *Result) (float64, bool) {
		a, b := r.at(one), r.at(other)
		if a == nil || b == nil || b.Figures[m].Median == 0 {
			return 0, false
		}
		return a.Figures[m].Median / b.Figures[m].Median, true
	}
}

// overOther is the ratio of one figure to another, each at its own point.
func overOther(m Metric, one where, n Metric, other where) measure {
	return func(r *Result) (float64, bool) {
		a, ok := figure(m, one)(r)
		b, also := figure(n, other)(r)
		return a / b, ok && also && b > 0
	}
}

// more is the difference of a figure between two points.
func more(m Metric, one, other where) measure {
	return func(r *Result) (float64, bool) {
		a, ok := figure(m, one)(r)
		b, also := figure(m, other)(r)
		return a - b, ok && also
	}
}

// growth is the ratio of the growth of one series between two x to that of another.
func growth(m Metric, one, other string, from, to float64) measure {
	return func(r *Result) (float64, bool) {
		grown := func(series string) (float64, bool) {
			a, b := r.at(where{series: series, x: from}), r.at(where{series: series, x: to})
			if a == nil || b == nil {
				return 0, false
			}
			return b.Figures[m].Median - a.Figures[m].Median, true
		}
		a, ok1 := grown(one)
		b, ok2 := grown(other)
		return a / b, ok1 && ok2 && b > 0
	}
}

func atLeast(least float64) func(float64) bool { return func(v float64) bool { return v >= least } }
func atMost(most float64) func(float64) bool   { return func(v float64) bool { return v <= most } }

// againstBest is the ratio of the figure at one point, where less is better, to that of the best of some others.
// Every other run decides which one is best, and the rest are compared, because the best of many noisy medians would
// be too good.
func againstBest(m Metric, one where, others ...where) measure {
	return func(r *Result) (float64, bool) {
		p := r.at(one)
		if p == nil {
			return 0, false
		}
		chosen, best := (*Point)(nil), math.Inf(1)
		for _, o := range others {
			q := r.at(o)
			if q == nil {
				continue
			}
			choose, _ := halves(q.Runs[m])
			if v := median(choose); v < best {
				chosen, best = q, v
			}
		}
		if chosen == nil {
			return 0, false
		}
		_, theirs := halves(chosen.Runs[m])
		_, ours := halves(p.Runs[m])
		return median(ours) / median(theirs), true
	}
}

// halves splits runs alternately. A single run is both halves.
func halves(runs []float64) (a, b []float64) {
	if len(runs) < 2 {
		return runs, runs
	}
	for i, v := range runs {
		if i%2 == 0 {
			a = append(a, v)
		} else {
			b = append(b, v)
		}
	}
	return a, b
}

// quietly is like times with lower quartiles instead of medians: a quarter of the runs is no longer. That reduces the
// influence of other programs on the machine, but not of effects in every run, or in most.
func quietly(m Metric, one, other where) measure {
	return func(r *Result) (float64, bool) {
		a, b := r.at(one), r.at(other)
		if a == nil || b == nil || b.Figures[m].Low == 0 {
			return 0, false
		}
		return a.Figures[m].Low / b.Figures[m].Low, true
	}
}

// spreadOver is the ratio of the greatest of some points' lower quartiles to the smallest.
func spreadOver(m Metric, points ...where) measure {
	return func(r *Result) (float64, bool) {
		var v []float64
		for _, w := range points {
			p := r.at(w)
			if p == nil {
				return 0, false
			}
			v = append(v, p.Figures[m].Low)
		}
		return slices.Max(v) / slices.Min(v), slices.Min(v) > 0
	}
}

// explained is the share of the variance of y among the runs of one point that x explains
// (the square of their correlation), averaged over some points, in percent.
func explained(y, x Metric, points ...where) measure {
	return func(r *Result) (float64, bool) {
		sum, n := 0.0, 0
		for _, w := range points {
			p := r.at(w)
			if p == nil || len(p.Runs[y]) < 3 {
				continue
			}
			if c := correlation(p.Runs[x], p.Runs[y]); !math.IsNaN(c) {
				sum += c * c
				n++
			}
		}
		return 100 * sum / float64(n), n > 0
	}
}

// correlation is Pearson's coefficient; NaN if one of the two does not vary.
func correlation(x, y []float64) float64 {
	n := min(len(x), len(y))
	var mx, my float64
	for i := range n {
		mx, my = mx+x[i]/float64(n), my+y[i]/float64(n)
	}
	var xy, xx, yy float64
	for i := range n {
		dx, dy := x[i]-mx, y[i]-my
		xy, xx, yy = xy+dx*dy, xx+dx*dx, yy+dy*dy
	}
	if xx == 0 || yy == 0 {
		return math.NaN()
	}
	return xy / math.Sqrt(xx*yy)
}

// lessThan is the distance of one series below the other in percent, at the x with the smallest distance.
func lessThan(m Metric, one, other, part string, xs ...float64) measure {
	most := worst(m, one, other, part, xs...)
	return func(r *Result) (float64, bool) {
		v, ok := most(r)
		return 100 * (1 - v), ok
	}
}

// worst is the maximal ratio of one series to another over some x. Other x than the measured ones do not count.
func worst(m Metric, one, other, part string, xs ...float64) measure {
	return mostOf(times, m, one, other, part, xs)
}

// worstQuiet is worst of lower quartiles, see quietly.
func worstQuiet(m Metric, one, other, part string, xs ...float64) measure {
	return mostOf(quietly, m, one, other, part, xs)
}

func mostOf(ratio func(m Metric, one, other where) measure, m Metric, one, other, part string, xs []float64) measure {
	return func(r *Result) (float64, bool) {
		most := 0.0
		for _, x := range xs {
			if v, ok := ratio(m, where{one, x, part}, where{other, x, part})(r); ok {
				most = max(most, v)
			}
		}
		return most, most > 0
	}
}

// peak is the ratio of the highest point of one series to that of another.
func peak(m Metric, one, onePart, other, otherPart string) measure {
	return func(r *Result) (float64, bool) {
		a, b := r.highest(m, one, onePart), r.highest(m, other, otherPart)
		return a / b, a > 0 && b > 0
	}
}

// most is the maximal ratio of a series to one point over some x. Other x than the measured ones do not count.
func most(m Metric, series, part string, xs []float64, base where) measure {
	return func(r *Result) (float64, bool) {
		top := 0.0
		for _, x := range xs {
			if v, ok := times(m, where{series, x, part}, base)(r); ok {
				top = max(top, v)
			}
		}
		return top, top > 0
	}
}

// apart is the maximal ratio between two series, up or down, over some x. Other x than the measured ones do not
// count.
func apart(m Metric, one, other, part string, xs ...float64) measure {
	up, down := worst(m, one, other, part, xs...), worst(m, other, one, part, xs...)
	return func(r *Result) (float64, bool) {
		u, ok := up(r)
		d, also := down(r)
		return max(u, d), ok && also
	}
}

// modelOff is how far the model is off from what is measured of some protocols, where it is most: in throughput and in
// the CPU time of a command.
func modelOff(part string, xs []float64, protocols ...string) measure {
	return func(r *Result) (float64, bool) {
		most := 0.0
		for _, p := range protocols {
			for _, m := range []Metric{Throughput, CPU} {
				off, ok := apart(m, modelPrefix+p, p, part, xs...)(r)
				if !ok {
					return 0, false
				}
				most = max(most, off)
			}
		}
		return most, len(protocols) > 0
	}
}

// least is the smallest of some figures. All of them must have been measured.
func least(some ...measure) measure {
	return func(r *Result) (float64, bool) {
		low := math.Inf(1)
		for _, f := range some {
			v, ok := f(r)
			if !ok {
				return 0, false
			}
			low = min(low, v)
		}
		return low, len(some) > 0
	}
}

// leastKnown is the smallest of the measured ones of some figures.
func leastKnown(some ...measure) measure {
	return func(r *Result) (float64, bool) {
		var known []measure
		for _, f := range some {
			if _, ok := f(r); ok {
				known = append(known, f)
			}
		}
		return least(known...)(r)
	}
}

// highest is the greatest median of a series, 0 if nothing was measured.
func (r *Result) highest(m Metric, series, part string) (top float64) {
	x := cmp.Or(part, r.e.XName)
	for i := range r.Series {
		if s := &r.Series[i]; s.Name == series && s.X == x && !s.Paper {
			for k := range s.Points {
				top = max(top, s.Points[k].Figures[m].Median)
			}
		}
	}
	return top
}

// figure is a point's own figure.
func figure(m Metric, at where) measure {
	return func(r *Result) (float64, bool) {
		p := r.at(at)
		if p == nil {
			return 0, false
		}
		f, ok := p.Figures[m]
		return f.Median, ok
	}
}
