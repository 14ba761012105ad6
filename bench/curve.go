package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// CurveConfig measures latency over throughput: every contestant under an open loop at several rates, up to its
// saturation.
type CurveConfig struct {
	Contestants []LogConfig // their Load.Rate is not used
	// Rates are the offered rates, ascending. Without them the saturation of every contestant is searched for,
	// beginning with Start.
	Rates  []float64
	Start  float64
	Rounds int // at each rate; the figures are medians
	// MaxP99 is the latency above which a contestant counts as saturated, even if it still answers all requests.
	MaxP99 time.Duration
}

// CurvePoint is a contestant at one rate, which is its RatePS.
type CurvePoint struct {
	*LogResult
	// Saturated indicates that the contestant could not keep up.
	Saturated bool `json:"saturated"`
}

// Curve is one contestant at all its rates, ascending.
type Curve struct {
	Protocol string `json:"protocol"`
	// KeepsUpPS is the highest rate that the contestant kept up with, 0 if none.
	KeepsUpPS float64 `json:"keeps_up_per_s"`
	// SaturatedPS is the lowest rate above KeepsUpPS, with which it did not: saturation
	// lies between the two. 0 if no rate was too high.
	SaturatedPS float64 `json:"saturated_per_s"`
	// ShareOfLimit is KeepsUpPS divided by that of [Limit]; 0 if the limit was not measured, and its own.
	ShareOfLimit float64       `json:"share_of_limit,omitempty"`
	Points       []*CurvePoint `json:"points"`
}

// LogCurves are the curves of several contestants.
type LogCurves struct {
	// LogResult is the first contestant's at the highest rate that it kept up with (or the
	// lowest that it did not): in JSON a curve has the fields of a single run.
	*LogResult
	Series   []*Curve `json:"series"`
	MaxP99MS float64  `json:"max_p99_ms"`
	// EndedEarly indicates that an interrupt or an error prevented further rates.
	EndedEarly bool `json:"ended_early,omitempty"`
}

// keptUp is the share of the offered commands that a contestant must complete to keep up.
const keptUp = 0.95

// Validate returns an error that says what is wrong with the configuration.
func (c *CurveConfig) Validate() error {
	rates := c.Rates
	if len(rates) == 0 {
		rates = []float64{c.Start}
	}
	for i, rate := range rates {
		switch {
		case !(rate > 0) || math.IsInf(rate, 0):
			return fmt.Errorf("rate %v: must be positive", rate)
		case i > 0 && rate <= rates[i-1]:
			return fmt.Errorf("rate %v after %v: the rates must rise", rate, rates[i-1])
		}
	}
	switch {
	case c.Rounds < 1:
		return fmt.Errorf("%d rounds: must be at least 1", c.Rounds)
	case c.MaxP99 <= 0:
		return fmt.Errorf("at most %v for the 99th percentile: must be positive", c.MaxP99)
	}
	for i := range c.Contestants {
		load := c.at(i, rates[0])
		if load.Load.Proposers > 0 {
			return errors.New("proposers form a closed loop, and a curve needs an open one: give one of the two")
		}
		if err := load.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// at returns a contestant's configuration at a rate.
func (c *CurveConfig) at(i int, rate float64) LogConfig {
	l := c.Contestants[i]
	l.Load.Rate = rate
	if show := l.Progress; show != nil {
		l.Progress = func(p Progress) {
			p.Phase = fmt.Sprintf("%s at %s/s", p.Phase, number(rate))
			show(p)
		}
	}
	return l
}

// RunLogCurves measures the curves. At each step all contestants that have rates left run
// at their next one, in rounds as in RunLogContest. When ctx ends, or a run fails, the
// result is of the rates before (nil if there are none), and so is the error.
func RunLogCurves(ctx context.Context, c CurveConfig) (*LogCurves, error) {
	return c.run(ctx, RunLog)
}

// run is RunLogCurves with the function that runs a contestant.
func (c *CurveConfig) run(ctx context.Context,
	run func(context.Context, LogConfig) (*LogResult, error)) (*LogCurves, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	out := &LogCurves{MaxP99MS: float64(c.MaxP99) / float64(time.Millisecond)}
	var searches []rateSearch
	for i := range c.Contestants {
		out.Series = append(out.Series, &Curve{Protocol: c.Contestants[i].Protocol})
		searches = append(searches, rateSearch{given: c.Rates, start: c.Start})
	}
	var err error
	for err == nil {
		var who []int
		var rates []float64
		for i := range searches {
			if rate, more := searches[i].next(); more {
				who, rates = append(who, i), append(rates, rate)
			}
		}
		if len(who) == 0 {
			break
		}
		var runs [][]*LogResult
		runs, err = Alternate(ctx, len(who), c.Rounds, func(ctx context.Context, k int) (*LogResult, error) {
			return run(ctx, c.at(who[k], rates[k]))
		})
		for k, of := range runs {
			if len(of) > 0 {
				p := &CurvePoint{LogResult: medianLogResult(of)}
				p.Saturated = p.saturated(out.MaxP99MS)
				out.Series[who[k]].add(p)
				searches[who[k]].measured(rates[k], p.Saturated)
			}
		}
	}
	out.Series = slices.DeleteFunc(out.Series, func(s *Curve) bool { return len(s.Points) == 0 })
	if len(out.Series) == 0 {
		return nil, err
	}
	out.shareOfLimit()
	out.LogResult, out.EndedEarly = out.Series[0].best().LogResult, err != nil
	return out, err
}

// saturated reports whether the contestant could not keep up with the rate.
func (p *CurvePoint) saturated(maxP99 float64) bool {
	// Each sender may be one command off at the edges of the measured time.
	least := keptUp*p.RatePS - float64(windowSenders)/p.DurationS
	return p.ThroughputPS < least || p.LatencyMS.P99 > maxP99
}

// add inserts a point in order and updates the saturation.
func (s *Curve) add(p *CurvePoint) {
	at := slices.IndexFunc(s.Points, func(q *CurvePoint) bool { return q.RatePS > p.RatePS })
	if at < 0 {
		at = len(s.Points)
	}
	s.Points = slices.Insert(s.Points, at, p)
	s.KeepsUpPS, s.SaturatedPS = 0, 0
	for _, p := range s.Points {
		switch {
		case !p.Saturated:
			s.KeepsUpPS, s.SaturatedPS = p.RatePS, 0
		case s.SaturatedPS == 0:
			s.SaturatedPS = p.RatePS
		}
	}
}

// best returns the point at the highest rate that the contestant kept up with, or else the lowest.
func (s *Curve) best() *CurvePoint {
	best := s.Points[0]
	for _, p := range s.Points {
		if !p.Saturated {
			best = p
		}
	}
	return best
}

const (
	// pastSaturation is the number of doubled rates in a row that must be too high to end the search. A single one may
	// have another cause on the machine.
	pastSaturation = 2
	// narrowings is how often the search halves the interval between the highest rate that was kept up with and the
	// lowest that was not, from a factor of 2 to one of 1.09.
	narrowings = 3
	// maxRate and minRate are the limits of the search.
	maxRate, minRate = 1e9, 1
)

// rateSearch selects the rates at which a contestant is measured: given ones, or first doubled ones until they are
// too high, then some in between.
type rateSearch struct {
	given []float64
	start float64

	tried     int
	good, bad float64 // bounds of saturation; 0: not known yet
	badInARow int
	last      float64 // of the doubled rates
	narrowed  int
}

// next returns the next rate; more is false when there is none.
func (s *rateSearch) next() (rate float64, more bool) {
	switch {
	case len(s.given) > 0:
		if s.tried < len(s.given) {
			return s.given[s.tried], true
		}
		return 0, false
	case s.tried == 0:
		return s.start, true
	case s.badInARow < pastSaturation:
		rate = 2 * s.last
		return rate, rate <= maxRate
	case s.good == 0: // it began too high
		rate = roundRate(s.bad / 2)
		return rate, rate >= minRate
	case s.narrowed < narrowings:
		rate = roundRate(math.Sqrt(s.good * s.bad))
		return rate, rate > s.good && rate < s.bad
	}
	return 0, false
}

// measured records whether a rate was too high.
func (s *rateSearch) measured(rate float64, tooHigh bool) {
	s.tried++
	doubling := s.badInARow < pastSaturation
	if !doubling && s.good > 0 {
		s.narrowed++
	}
	switch {
	case !tooHigh:
		s.good = rate
		if doubling {
			s.bad, s.badInARow = 0, 0
		}
	case doubling:
		s.badInARow++
		if s.bad == 0 {
			s.bad = rate
		}
	default:
		s.bad = rate
	}
	if doubling {
		s.last = rate
	}
}

// roundRate rounds to three digits.
func roundRate(rate float64) float64 {
	if rate <= 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(rate))-2)
	if unit < 1 {
		return rate
	}
	return math.Round(rate/unit) * unit
}

func (c *Curve) isLimit() bool { return c.Protocol == Limit }

// shareOfLimit sets the share of each contestant, if the limit was measured.
func (c *LogCurves) shareOfLimit() {
	at := slices.IndexFunc(c.Series, (*Curve).isLimit)
	if at < 0 {
		return
	}
	for i, s := range c.Series {
		if i != at {
			s.ShareOfLimit = quotient(s.KeepsUpPS, c.Series[at].KeepsUpPS)
		}
	}
}
