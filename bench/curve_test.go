package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// fakeRun is a contestant that answers at most this number of commands a second, and records the rates.
type fakeRun struct {
	capacity map[string]float64
	asked    []string
	rates    map[string][]float64
	hiccup   float64 // a rate at which another program disturbs the machine
}

func (f *fakeRun) run(_ context.Context, c LogConfig) (*LogResult, error) {
	rate := c.Load.Rate
	f.asked = append(f.asked, c.Protocol)
	if f.rates == nil {
		f.rates = map[string][]float64{}
	}
	f.rates[c.Protocol] = append(f.rates[c.Protocol], rate)
	r := &LogResult{RatePS: rate, Mode: "rate", Verified: true}
	r.Protocol, r.DurationS, r.ThroughputPS = c.Protocol, 10, min(rate, f.capacity[c.Protocol])
	r.LatencyMS = Latency{P50: 1, P99: 2}
	if rate == f.hiccup {
		r.LatencyMS.P99 = 501
	}
	return r, nil
}

func curveOf(protocols ...string) CurveConfig {
	c := CurveConfig{Start: 10_000, Rounds: 1, MaxP99: 500 * time.Millisecond}
	for _, p := range protocols {
		c.Contestants = append(c.Contestants,
			LogConfig{Protocol: p, Nodes: 3, Load: Load{Payload: 16, Inflight: 100, Duration: time.Second}})
	}
	return c
}

// The search must bracket the rate at which a contestant is saturated, from any start.
func TestRateSearch(t *testing.T) {
	for _, c := range []struct {
		name            string
		capacity, start float64
		want            []float64 // of the rates, if not nil
	}{
		// 95 % of 105,000 are 99,750: that is enough.
		{"doubling", 100_000, 10_000, []float64{10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 113_000, 95_100,
			104_000}},
		{"too high at first", 100_000, 1_000_000, []float64{1_000_000, 2_000_000, 500_000, 250_000, 125_000, 62_500,
			88_400, 105_000, 115_000}},
		{"slow", 30, 10, nil},
		{"fast", 7_000_000, 10_000, nil},
	} {
		f := &fakeRun{capacity: map[string]float64{"raft": c.capacity}}
		config := curveOf("raft")
		config.Start = c.start
		out, err := config.run(t.Context(), f.run)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		s := out.Series[0]
		// The error of senders at the edges of the measured time.
		limit := (c.capacity + windowSenders/10.0) / keptUp
		if s.KeepsUpPS > limit || s.SaturatedPS < limit || s.SaturatedPS > 1.1*s.KeepsUpPS {
			t.Errorf("%s: saturated between %v and %v, want %v", c.name, s.KeepsUpPS, s.SaturatedPS, limit)
		}
		if c.want != nil && !slices.Equal(f.rates["raft"], c.want) {
			t.Errorf("%s: measured at %v, want %v", c.name, f.rates["raft"], c.want)
		}
		rising := slices.IsSortedFunc(s.Points, func(a, b *CurvePoint) int { return int(a.RatePS - b.RatePS) })
		if !rising || len(s.Points) != len(f.rates["raft"]) {
			t.Errorf("%s: %d points of %d rates, rising: %v", c.name, len(s.Points), len(f.rates["raft"]), rising)
		}
		if out.RatePS != s.KeepsUpPS {
			t.Errorf("%s: the curve's own figures are those at %v, want %v", c.name, out.RatePS, s.KeepsUpPS)
		}
	}
}

// One disturbed rate must not end the search.
func TestRateSearchSurvivesAHiccup(t *testing.T) {
	f := &fakeRun{capacity: map[string]float64{"raft": 100_000}, hiccup: 20_000}
	config := curveOf("raft")
	out, err := config.run(t.Context(), f.run)
	if err != nil {
		t.Fatal(err)
	}
	s := out.Series[0]
	if !s.Points[1].Saturated || s.Points[2].Saturated {
		t.Errorf("the point with the hiccup is saturated: %v, the one after it: %v", s.Points[1].Saturated,
			s.Points[2].Saturated)
	}
	if s.KeepsUpPS != 104_000 || s.SaturatedPS != 113_000 {
		t.Errorf("saturated between %v and %v", s.KeepsUpPS, s.SaturatedPS)
	}
}

// Contestants alternate at every rate, and a finished one does not affect the others.
func TestCurvesAlternate(t *testing.T) {
	f := &fakeRun{capacity: map[string]float64{"raft": 50, "etcd-raft": 25}}
	config := curveOf("raft", "etcd-raft")
	config.Rates, config.Rounds = []float64{10, 20, 40}, 2
	out, err := config.run(t.Context(), f.run)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(f.asked[:4], []string{"raft", "etcd-raft", "etcd-raft", "raft"}) || len(f.asked) != 12 {
		t.Errorf("the order was %v", f.asked)
	}
	a, b := out.Series[0], out.Series[1]
	if a.KeepsUpPS != 40 || a.SaturatedPS != 0 || b.KeepsUpPS != 20 || b.SaturatedPS != 40 {
		t.Errorf("saturation %v–%v and %v–%v", a.KeepsUpPS, a.SaturatedPS, b.KeepsUpPS, b.SaturatedPS)
	}
	if a.Points[0].Rounds != 2 {
		t.Errorf("%d rounds", a.Points[0].Rounds)
	}

	f = &fakeRun{capacity: map[string]float64{"raft": 1e6, "etcd-raft": 15_000}}
	config = curveOf("raft", "etcd-raft")
	if _, err = config.run(t.Context(), f.run); err != nil {
		t.Fatal(err)
	}
	if len(f.rates["raft"]) <= len(f.rates["etcd-raft"]) {
		t.Errorf("measured at %v", f.rates)
	}
}

// Results before an error are kept.
func TestCurveKeepsWhatItHas(t *testing.T) {
	f := &fakeRun{capacity: map[string]float64{"raft": 1e9}}
	failing := func(ctx context.Context, c LogConfig) (*LogResult, error) {
		if len(f.asked) == 2 {
			return nil, errors.New("the disk is full")
		}
		return f.run(ctx, c)
	}
	config := curveOf("raft")
	out, err := config.run(t.Context(), failing)
	if err == nil || out == nil || len(out.Series[0].Points) != 2 || !out.EndedEarly {
		t.Fatalf("error %v, result %+v", err, out)
	}
	var text, data bytes.Buffer
	out.WriteText(&text)
	for _, want := range []string{"raft keeps up with every rate, up to 20,000/s", "ended early", "achieved/s",
		"verified"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q: %s", want, text.String())
		}
	}
	if err := WriteJSON(&data, out); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Throughput float64 `json:"throughput_per_s"`
		Series     []struct {
			Protocol string
			KeepsUp  float64 `json:"keeps_up_per_s"`
			Points   []map[string]any
		}
	}
	if err := json.Unmarshal(data.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Throughput != 20_000 || got.Series[0].KeepsUp != 20_000 || got.Series[0].Protocol != "raft" {
		t.Errorf("JSON %+v", got)
	}
	for _, field := range strings.Fields("rate_per_s throughput_per_s latency_ms cpu_us_per_op saturated verified") {
		if _, ok := got.Series[0].Points[0][field]; !ok {
			t.Errorf("a point lacks %q", field)
		}
	}
	failed := func(context.Context, LogConfig) (*LogResult, error) { return nil, errors.New("no") }
	if out, err := config.run(t.Context(), failed); out != nil || err == nil {
		t.Errorf("result %v, error %v of a curve without a point", out, err)
	}
}

func TestCurveValidate(t *testing.T) {
	for _, c := range []struct {
		change func(*CurveConfig)
		want   string
	}{
		{func(c *CurveConfig) { c.Start = 0 }, "rate 0"},
		{func(c *CurveConfig) { c.Rates = []float64{5, 5} }, "must rise"},
		{func(c *CurveConfig) { c.Rates = []float64{5, -5} }, "must be positive"},
		{func(c *CurveConfig) { c.Rounds = 0 }, "0 rounds"},
		{func(c *CurveConfig) { c.MaxP99 = 0 }, "99th percentile"},
		{func(c *CurveConfig) { c.Contestants[0].Load.Proposers = 3 }, "open one"},
		{func(c *CurveConfig) { c.Contestants[0].Protocol = "x" }, "unknown protocol"},
	} {
		bad := curveOf("raft")
		c.change(&bad)
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}
