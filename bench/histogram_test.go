package bench

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// The percentiles must be those of the sorted latencies, to three digits.
func TestPercentiles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	h := newHistogram()
	var sorted []float64 // ms
	for range 100_000 {
		ns := int64(math.Exp(r.NormFloat64()*1.5+13)) + 1000 // around 0.4 ms, with a long tail
		record(h, ns)
		sorted = append(sorted, float64(ns)/1e6)
	}
	slices.Sort(sorted)
	l := latencyOf(h)
	for _, c := range []struct {
		name  string
		at    float64
		value float64
	}{{"p50", 0.5, l.P50}, {"p90", 0.9, l.P90}, {"p99", 0.99, l.P99}, {"p999", 0.999, l.P999}, {"max", 1, l.Max}} {
		want := sorted[min(int(c.at*float64(len(sorted))), len(sorted)-1)]
		if math.Abs(c.value-want) > want*0.005+0.001 {
			t.Errorf("%s is %v ms, sorted latencies say %v", c.name, c.value, want)
		}
	}
}

func TestHistogramBounds(t *testing.T) {
	h := newHistogram()
	record(h, -5)              // a clock that went back
	record(h, math.MaxInt64/2) // beyond what it tracks
	if h.TotalCount() != 2 || h.Min() > 1 || h.Max() < 599_000_000 {
		t.Errorf("latencies beyond the bounds were not kept at the bounds: %d values, %d to %d µs", h.TotalCount(),
			h.Min(), h.Max())
	}
}

func TestShardedHistogramLosesNothing(t *testing.T) {
	var s shardedHistogram
	var wg sync.WaitGroup
	for who := range 50 {
		wg.Go(func() {
			for i := range 1000 {
				s.record(who, int64(i+1)*1000)
			}
		})
	}
	wg.Wait()
	m := s.merged()
	if m.TotalCount() != 50_000 || m.Max() < 999 || m.Max() > 1001 {
		t.Errorf("merged %d values up to %d µs, want 50000 up to 1000", m.TotalCount(), m.Max())
	}
}

func TestMedianAndSpread(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(c.values); got != c.want {
			t.Errorf("median(%v) = %v, want %v", c.values, got, c.want)
		}
	}
	runs := []Figures{{ThroughputPS: 5, Errors: 1, LatencyMS: Latency{P99: 7}},
		{ThroughputPS: 1, LatencyMS: Latency{P99: 9}}, {ThroughputPS: 3, Errors: 2, LatencyMS: Latency{P99: 8}}}
	m := medianFigures(runs)
	if m.ThroughputPS != 3 || m.LatencyMS.P99 != 8 || m.Errors != 3 {
		t.Errorf("medians are %+v", m)
	}
	if s := spread(runs); s != [2]float64{1, 5} {
		t.Errorf("spread is %v", s)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.123: "0.12", 9.999: "10.00", 45.67: "45.7", 123.4: "123",
		1234: "1,234", 1234567: "1,234,567", -12345: "-12,345"} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %q, want %q", v, got, want)
		}
	}
}
