package paper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braidlog/braid/internal/sim/scale"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol/setting"
)

// modelExperiment is the fake one with two points that are computed.
func modelExperiment() *Experiment {
	e := fakeExperiment()
	s := Setup{Protocol: "niagara", Values: setting.MustParse("instances=4"), BatchCommands: 1}
	work := Work{Rate: saturating, For: 50 * time.Millisecond, Inflight: 900}
	e.Cases = append(e.Cases,
		Case{Series: "model: a", X: 1, Setup: s.modelled(8), Work: work},
		Case{Series: "model: a", X: 2, Setup: s.modelled(0), Work: Work{Rate: 7000, For: 50 * time.Millisecond}})
	e.Fit = []where{{series: "b", x: 1}, {series: "c", x: 1}}
	e.Plots[0].Y = Throughput
	return e
}

// fakeModel records its calls.
type fakeModel struct {
	mu      sync.Mutex
	asked   map[int]scale.Config // by the cores
	points  []scale.Measurement
	failure error
}

func (f *fakeModel) model() Model {
	f.asked = map[int]scale.Config{}
	return Model{
		Calibrate: func(context.Context, string, []scale.Config) (scale.Costs, error) {
			return scale.Costs{Factor: 1, Wake: 5}, nil
		},
		Fit: func(c scale.Costs, m []scale.Measurement) (scale.Costs, error) {
			f.points, c.Factor = m, 2
			return c, nil
		},
		Run: func(c scale.Config) (*scale.Result, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.asked[c.Cores] = c
			r := &scale.Result{Throughput: 1000 * c.Costs.Factor, P50: time.Millisecond, P90: 2 * time.Millisecond, Egress: 5000,
				CPU: time.Microsecond}
			return r, f.failure
		},
	}
}

func TestModelIsComputed(t *testing.T) {
	w, f := &fakeWorld{figure: steady}, &fakeModel{}
	r, err := Run(t.Context(), modelExperiment(), Config{Dir: t.TempDir(), Rounds: 2, Open: w.openTarget,
		Model: f.model()})
	if err != nil {
		t.Fatal(err)
	}
	if w.opened != 2 || len(w.calls) != 8 {
		t.Errorf("%d clusters opened, %d runs measured", w.opened, len(w.calls))
	}
	p := r.at(where{series: "model: a", x: 1})
	if p == nil || p.Count != 1 || p.Figures[Throughput].Median != 2000 || p.Figures[P90].Median != 2 ||
		p.Figures[Egress].Median != 2.5 {
		t.Fatalf("computed %+v", p)
	}
	many, here := f.asked[8], f.asked[runtime.NumCPU()]
	if many.Shared || many.Instances != 4 || many.Protocol != "niagara" || many.Rate != 0 || many.Inflight != 900 ||
		many.MaxBatchCommands != 1 || many.Costs.Wake != 5 {
		t.Errorf("asked %+v", many)
	}
	if !here.Shared || here.Rate != 7000 || here.Nodes != 3 || here.Payload != 16 || here.Duration != 50*time.Millisecond {
		t.Errorf("asked %+v", here)
	}
	// b at 1 took 30 and 31 ms: 1000/30 and 1000/31 requests a second, according to the fake.
	if len(f.points) != 1 || f.points[0].Throughput != (1000./30+1000./31)/2 ||
		f.points[0].CPU != 30500*time.Nanosecond || !f.points[0].Config.Shared ||
		f.points[0].Config.Protocol != "raft" {
		t.Errorf("fitted to %+v", f.points)
	}
	if r.Costs == nil || r.Costs.Factor != 2 || r.Costs.Wake != 5 {
		t.Errorf("costs %+v", r.Costs)
	}
	checkModelReport(t, r)
}

// Computed figures are marked as such everywhere, and their costs are kept.
func checkModelReport(t *testing.T, r *Result) {
	t.Helper()
	dir := t.TempDir()
	if err := WriteReport(dir, []*Result{r}); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	var kept Result
	if err := json.NewDecoder(bytes.NewBufferString(read("fake.json"))).Decode(&kept); err != nil || kept.Costs == nil ||
		kept.Costs.Factor != 2 {
		t.Errorf("kept %+v, %v", kept.Costs, err)
	}
	models := 0
	for _, s := range kept.Series {
		if s.Model {
			models++
		}
		if s.Model != strings.HasPrefix(s.Name, modelPrefix) {
			t.Errorf("series %q: model %v", s.Name, s.Model)
		}
	}
	if models != 1 || !strings.Contains(read("fake.svg"), `class="line model"`) {
		t.Errorf("%d computed series, picture %s", models, read("fake.svg"))
	}
	page := read("index.html")
	wellFormed(t, "index.html", []byte(page), false)
	if !strings.Contains(page, "Costs that the model computes with") || !strings.Contains(page, "&#34;wake_ns&#34;:5") {
		t.Error("the page lacks the costs")
	}
	if csv := read("fake.csv"); !strings.Contains(csv,
		"model: a,false,requests,1,throughput_per_s,2000,2000,2000,1,true") {
		t.Errorf("table %s", csv)
	}
}

func TestModelFails(t *testing.T) {
	w, f := &fakeWorld{figure: steady}, &fakeModel{failure: errors.New("no such world")}
	r, err := Run(t.Context(), modelExperiment(), Config{Dir: t.TempDir(), Rounds: 1, Open: w.openTarget,
		Model: f.model()})
	if err != nil || r.at(where{series: "model: a", x: 1}) != nil || len(r.Machine.Notes) != 2 ||
		!strings.Contains(r.Machine.Notes[0], "no such world") {
		t.Errorf("%v, notes %q", err, r.Machine.Notes)
	}
	m := f.model()
	m.Calibrate = func(context.Context, string, []scale.Config) (scale.Costs, error) {
		return scale.Costs{}, errors.New("no clock")
	}
	if _, err := Run(t.Context(), modelExperiment(), Config{Dir: t.TempDir(), Rounds: 1, Open: w.openTarget,
		Model: m}); err == nil || !strings.Contains(err.Error(), "no clock") {
		t.Errorf("error %v", err)
	}
	if w.open != 0 {
		t.Errorf("%d clusters left open", w.open)
	}
}

// The real model, on a real cluster: small, as a test of the whole.
func TestRealModel(t *testing.T) {
	testsize.Long(t)
	work := Work{Rate: saturating, For: 30 * time.Millisecond, Inflight: 500}
	raft := niagaraSetup(0, entryEach)
	e := &Experiment{
		Name: "tiny", XName: "x", Fit: []where{{series: "raft", x: 1}},
		Cases: []Case{
			{Series: "raft", X: 1, Setup: raft, Work: Work{Rate: saturating, For: 300 * time.Millisecond, Inflight: 500}},
			{Series: "model: raft", X: 1, Setup: raft.modelled(0), Work: work},
			{Series: "model: niagara", X: 4, Setup: niagaraSetup(4, entryEach).modelled(4), Work: work},
			{Series: "model: niagara", X: 5, Setup: niagaraSetup(2, entryEach).modelled(2),
				Work: Work{Rate: 1000, For: 100 * time.Millisecond}},
		},
	}
	r, err := Run(t.Context(), e, Config{Dir: t.TempDir(), Rounds: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []where{{series: "model: raft", x: 1}, {series: "model: niagara", x: 4},
		{series: "model: niagara", x: 5}} {
		p := r.at(w)
		if p == nil || p.Figures[Throughput].Median <= 0 || p.Figures[P90].Median <= 0 || p.Figures[CPU].Median <= 0 {
			t.Errorf("%s at %v: %+v, notes %q", w.series, w.x, p, r.Machine.Notes)
		}
	}
	if r.Costs == nil || r.Costs.Factor <= 0 || len(r.Costs.Disk) == 0 {
		t.Errorf("costs %+v", r.Costs)
	}
}

// What is computed is a claim only if the model says what was measured.
func TestAModelThatIsOffHasNoClaims(t *testing.T) {
	for _, c := range []struct {
		throughput, cpu float64 // of the model; 100 and 10 were measured
		off             float64
		judged          bool
	}{
		{100, 10, 1, true}, {125, 9, 1.25, true}, {80, 10, 1.25, true}, {100, 14, 1.4, false}, {140, 10, 1.4, false},
		{50, 10, 2, false},
	} {
		e := &Experiment{XName: "members", Claims: []Claim{{
			Text: "claim", Unit: "×", Measure: times(Throughput, where{modelPrefix + "a", 8, ""}, where{"a", 3, ""}),
			Holds: atLeast(1), Off: modelOff("", []float64{3}, "a"),
		}}}
		r := &Result{e: e}
		r.add(&Case{Series: "a", X: 3}, Sample{Throughput: 100, CPU: 10})
		r.add(&Case{Series: modelPrefix + "a", X: 3}, Sample{Throughput: c.throughput, CPU: c.cpu})
		r.add(&Case{Series: modelPrefix + "a", X: 8}, Sample{Throughput: 500, CPU: 10})
		r.finish(e.fullRounds())
		j := r.Claims[0]
		if j.Measured == nil || j.ModelOff == nil || math.Abs(*j.ModelOff-c.off) > 0.01 ||
			(j.Holds != nil) != c.judged {
			t.Errorf("%+v: %+v, off by %v", c, j, j.ModelOff)
		}
	}
}
