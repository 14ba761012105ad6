package paper

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// axis maps values to positions on an axis.
type axis struct {
	lo, hi   float64 // of the values; lo < hi, with log both > 0
	from, to float64 // of the positions
	log      bool
}

// newAxis returns an axis for values. A linear axis begins at 0; a logarithmic one omits values that are not
// positive.
func newAxis(values []float64, log bool) axis {
	if log {
		values = slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return v <= 0 })
	}
	if len(values) == 0 {
		return axis{lo: 1, hi: 10, log: log}
	}
	s := axis{lo: slices.Min(values), hi: slices.Max(values), log: log}
	if log {
		s.lo, s.hi = math.Pow(10, math.Floor(math.Log10(s.lo)*3+0.01)/3), math.Pow(10, math.Ceil(math.Log10(s.hi)*3-0.01)/3)
		if s.hi/s.lo < 2 {
			s.lo, s.hi = s.lo/2, s.hi*2
		}
		return s
	}
	s.lo = min(0, s.lo)
	if s.hi <= s.lo {
		s.hi = s.lo + 1
	}
	step := niceStep((s.hi - s.lo) / 5)
	s.hi = math.Ceil(s.hi/step-1e-9) * step
	s.lo = math.Floor(s.lo/step+1e-9) * step
	return s
}

// around returns an axis for values with a small margin at both ends, for the x axis of lines.
func around(values []float64, log bool) axis {
	s := axis{lo: slices.Min(values), hi: slices.Max(values), log: log}
	if log && s.lo > 0 {
		room := math.Pow(s.hi/s.lo, 0.04)
		if room == 1 {
			room = 2
		}
		s.lo, s.hi = s.lo/room, s.hi*room
		return s
	}
	s.log = false
	room := (s.hi - s.lo) * 0.05
	if room == 0 {
		room = 1
	}
	s.lo, s.hi = s.lo-room, s.hi+room
	return s
}

func (s axis) at(v float64) float64 {
	f := (v - s.lo) / (s.hi - s.lo)
	if s.log {
		f = math.Log(math.Max(v, s.lo)/s.lo) / math.Log(s.hi/s.lo)
	}
	return s.from + f*(s.to-s.from)
}

// ticks returns the labelled values.
func (s axis) ticks() []float64 {
	var t []float64
	if !s.log {
		step := niceStep((s.hi - s.lo) / 5)
		for v := math.Ceil(s.lo/step-1e-9) * step; v <= s.hi+step*1e-9; v += step {
			t = append(t, v)
		}
		return t
	}
	digits := []float64{1}
	if s.hi/s.lo < 300 {
		digits = []float64{1, 2, 5}
	}
	for p := math.Floor(math.Log10(s.lo)); p <= math.Ceil(math.Log10(s.hi)); p++ {
		for _, d := range digits {
			if v := d * math.Pow(10, p); v >= s.lo*0.999 && v <= s.hi*1.001 {
				t = append(t, v)
			}
		}
	}
	return t
}

// niceStep is the smallest of 1, 2, 2.5, 5 × a power of ten that is at least v.
func niceStep(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, d := range []float64{1, 2, 2.5, 5} {
		if d*p >= v*0.999 {
			return d * p
		}
	}
	return 10 * p
}

// number writes a number with about three digits, and thousands separated.
func number(v float64) string {
	a := math.Abs(v)
	switch {
	case math.IsNaN(v):
		return "–"
	case a == 0:
		return "0"
	case a < 0.1:
		return trim(strconv.FormatFloat(v, 'f', 3, 64))
	case a < 10:
		return trim(strconv.FormatFloat(v, 'f', 2, 64))
	case a < 100:
		return trim(strconv.FormatFloat(v, 'f', 1, 64))
	}
	digits := strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	sign, digits := digits[:len(digits)-len(strings.TrimLeft(digits, "-"))], strings.TrimLeft(digits, "-")
	var b strings.Builder
	b.WriteString(sign)
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// trim drops zeros after a decimal point.
func trim(s string) string {
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}
