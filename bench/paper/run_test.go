package paper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braidlog/braid/internal/testsize"
)

// fakeWorld makes targets with given figures, and records events.
type fakeWorld struct {
	mu     sync.Mutex
	calls  []string
	opened int
	open   int
	// figure is the runtime of the n-th run (from 0) of a setup.
	figure func(s Setup, w Work, n int) (float64, error)
	check  error
}

type fakeTarget struct {
	world *fakeWorld
	setup Setup
	runs  int
}

func (w *fakeWorld) openTarget(_ context.Context, _ string, s Setup) (Target, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened++
	w.open++
	return &fakeTarget{world: w, setup: s}, nil
}

func (t *fakeTarget) Run(ctx context.Context, w Work) (Sample, error) {
	t.world.mu.Lock()
	t.world.calls = append(t.world.calls, fmt.Sprintf("%s:%d", setupName[t.setup.Net], w.Requests))
	t.world.mu.Unlock()
	v, err := t.world.figure(t.setup, w, t.runs)
	t.runs++
	return Sample{Runtime: v, Throughput: 1000 / v, CPU: v}, errors.Join(err, ctx.Err())
}

func (t *fakeTarget) Check(context.Context) error { return t.world.check }

func (t *fakeTarget) Close() error {
	t.world.mu.Lock()
	defer t.world.mu.Unlock()
	t.world.open--
	return nil
}

// The links distinguish the fake's two setups.
const netA, netB = "latency=1ms", "latency=2ms"

var setupName = map[string]string{netA: "a", netB: "b"}

// fakeExperiment compares two setups, a and b, at two points; a is short and runs twice.
func fakeExperiment() *Experiment {
	a, b := Setup{Net: netA}, Setup{Net: netB}
	return &Experiment{
		Name: "fake", Title: "Fake", XName: "requests", Table: []Metric{Runtime, Throughput},
		Cases: []Case{
			{Series: "a", X: 1, Setup: a, Work: Work{Requests: 1}, Times: 2},
			{Series: "b", X: 1, Setup: b, Work: Work{Requests: 1}},
			{Series: "a", X: 2, Setup: a, Work: Work{Requests: 2}, Full: true},
		},
		Plots: []Plot{{Kind: Lines, Title: "Runtime", XLabel: "requests", Y: Runtime,
			Paper: []Curve{{"paper: a", "a", []float64{1, 2}, []float64{5, 6}}}}},
		Claims: []Claim{
			{
				Text: "b is twice as slow", Paper: 2.5, Unit: "×", Holds: atLeast(2),
				Measure: times(Runtime, where{series: "b", x: 1}, where{series: "a", x: 1}),
			},
			{
				Text: "c is slow", Unit: "×", Holds: atLeast(0),
				Measure: times(Runtime, where{series: "c", x: 1}, where{series: "a", x: 1}),
			},
		},
		Rounds: 3, QuickRounds: 2,
	}
}

func steady(s Setup, w Work, n int) (float64, error) {
	if s.Net == netB {
		return 30 + float64(n), nil
	}
	return 10 + float64(n*w.Requests), nil
}

func TestRunAlternates(t *testing.T) {
	w := &fakeWorld{figure: steady}
	r, err := Run(t.Context(), fakeExperiment(), Config{Dir: t.TempDir(), Rounds: 3, Open: w.openTarget})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"a:1", "b:1", "a:2", "a:1", // the second turn of a case comes after the others' first
		"b:1", "a:2", "a:1", "a:1", // each round begins with the next case
		"a:2", "a:1", "b:1", "a:1",
	}
	if !slices.Equal(w.calls, want) {
		t.Errorf("runs in the order\n%v, want\n%v", w.calls, want)
	}
	if w.opened != 2 || w.open != 0 {
		t.Errorf("%d clusters opened, %d left open: want one for each setup, all closed", w.opened, w.open)
	}
	if r.Machine.Rounds != 3 || r.at(where{series: "a", x: 1}).Count != 6 {
		t.Errorf("%d rounds, %d runs of a at 1", r.Machine.Rounds, r.at(where{series: "a", x: 1}).Count)
	}
}

// Clusters that run alone are opened when their turn comes, each once in a round, and checked before they are closed.
func TestRunAlone(t *testing.T) {
	w, e := &fakeWorld{figure: steady}, fakeExperiment()
	e.Alone = true
	for i := range e.Cases {
		e.Cases[i].Times = 1
	}
	most := 0
	r, err := Run(t.Context(), e, Config{Dir: t.TempDir(), Rounds: 1, Open: w.openTarget, Progress: func(Progress) {
		w.mu.Lock()
		defer w.mu.Unlock()
		most = max(most, w.open)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if w.opened != 2 || w.open != 0 || most != 1 || r.at(where{series: "b", x: 1}).Count != 1 {
		t.Errorf("%d clusters opened, %d left open, %d at once, %d runs of b", w.opened, w.open, most,
			r.at(where{series: "b", x: 1}).Count)
	}
	w = &fakeWorld{figure: steady, check: errors.New("members 1 and 2 differ")}
	if r, err := Run(t.Context(), e, Config{Dir: t.TempDir(), Rounds: 1, Open: w.openTarget}); err == nil ||
		len(r.Violations()) != 1 || w.open != 0 {
		t.Errorf("result %+v, error %v, %d clusters left open", r, err, w.open)
	}
}

func TestRunFigures(t *testing.T) {
	w := &fakeWorld{figure: steady}
	r, err := Run(t.Context(), fakeExperiment(), Config{Dir: t.TempDir(), Quick: true, Open: w.openTarget})
	if err != nil {
		t.Fatal(err)
	}
	if r.at(where{series: "a", x: 2}) != nil {
		t.Error("a quick run measured a case that is for full runs")
	}
	// a runs as number 0 to 3 at x = 1 (10, 11, 12, 13), b as number 0 and 1 (30, 31).
	if f := r.at(where{series: "a", x: 1}).Figures[Runtime]; f != (Figure{11.5, 10, 10.75, 12.25, 13}) {
		t.Errorf("a: %+v", f)
	}
	if f := r.at(where{series: "b", x: 1}).Figures[Runtime]; f != (Figure{30.5, 30, 30.25, 30.75, 31}) {
		t.Errorf("b: %+v", f)
	}
	c := r.Claims[0]
	if c.Measured == nil || *c.Measured != 30.5/11.5 || !c.passes || c.Holds != nil ||
		c.Paper == nil || *c.Paper != 2.5 {
		t.Errorf("claim %+v", c)
	}
	if c := r.Claims[1]; c.Measured != nil || c.Holds != nil || c.Paper != nil {
		t.Errorf("a claim about what was not measured: %+v", c)
	}
}

// A disturbed run is repeated on a new cluster, and the report records it.
func TestRunAgain(t *testing.T) {
	failed := false
	w := &fakeWorld{figure: func(s Setup, k Work, n int) (float64, error) {
		if s.Net == netB && !failed {
			failed = true
			return 0, errors.New("the leader changed")
		}
		return steady(s, k, n)
	}}
	r, err := Run(t.Context(), fakeExperiment(), Config{Dir: t.TempDir(), Rounds: 1, Open: w.openTarget})
	if err != nil {
		t.Fatal(err)
	}
	if w.opened != 3 || w.open != 0 || r.at(where{series: "b", x: 1}).Count != 1 {
		t.Errorf("%d clusters opened, %d left open, %d runs of b", w.opened, w.open, r.at(where{series: "b", x: 1}).Count)
	}
	if len(r.Machine.Notes) != 1 || !strings.Contains(r.Machine.Notes[0], "the leader changed") {
		t.Errorf("notes %q", r.Machine.Notes)
	}
	w.figure = func(Setup, Work, int) (float64, error) { return 0, errors.New("broken") }
	if _, err := Run(t.Context(), fakeExperiment(), Config{Dir: t.TempDir(), Rounds: 1, Open: w.openTarget}); err == nil ||
		!strings.Contains(err.Error(), "broken") {
		t.Errorf("a contestant that never works: error %v", err)
	}
	if w.open != 0 {
		t.Errorf("%d clusters left open", w.open)
	}
}

// Results before an interrupt are kept, and so is the error.
func TestRunInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := &fakeWorld{}
	w.figure = func(s Setup, k Work, n int) (float64, error) {
		if s.Net == netB {
			cancel()
		}
		return steady(s, k, n)
	}
	r, err := Run(ctx, fakeExperiment(), Config{Dir: t.TempDir(), Open: w.openTarget})
	if !errors.Is(err, context.Canceled) || r == nil {
		t.Fatalf("result %v, error %v", r, err)
	}
	if r.at(where{series: "a", x: 1}) == nil || r.at(where{series: "b", x: 1}) != nil || r.Machine.Rounds != 0 ||
		w.open != 0 {
		t.Errorf("series %+v after %d rounds, %d clusters left open", r.Series, r.Machine.Rounds, w.open)
	}
	if len(r.Machine.Notes) != 1 || !strings.Contains(r.Machine.Notes[0], "interrupted") {
		t.Errorf("notes %q", r.Machine.Notes)
	}
}

// The limit ends an experiment without an error; only rounds that fit are begun.
func TestRunLimit(t *testing.T) {
	testsize.Long(t)
	w := &fakeWorld{figure: func(s Setup, k Work, n int) (float64, error) {
		<-time.After(20 * time.Millisecond) // represents work, nothing waits for it
		return steady(s, k, n)
	}}
	began := time.Now()
	r, err := Run(t.Context(), fakeExperiment(), Config{Dir: t.TempDir(), Rounds: 1000, Limit: 2 * time.Second,
		Open: w.openTarget})
	if err != nil || r.Machine.Rounds == 0 || r.Machine.Rounds == 1000 {
		t.Fatalf("%+v, error %v", r, err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("took %v with a limit of 2 s", took)
	}
	if len(r.Machine.Notes) != 1 {
		t.Errorf("notes %q", r.Machine.Notes)
	}
}

func TestRunViolation(t *testing.T) {
	w := &fakeWorld{figure: steady, check: errors.New("members 1 and 2 differ")}
	r, err := Run(t.Context(), fakeExperiment(), Config{Dir: t.TempDir(), Rounds: 1, Open: w.openTarget})
	if err == nil || !strings.Contains(err.Error(), "members 1 and 2 differ") || r == nil || len(r.Violations()) != 1 {
		t.Errorf("result %+v, error %v", r, err)
	}
}

func TestSelect(t *testing.T) {
	all, err := Select("all")
	long := func(e *Experiment) bool { return e.Long }
	if err != nil || len(all) != len(slices.DeleteFunc(Experiments(), long)) || slices.ContainsFunc(all, long) {
		t.Errorf("%d experiments, error %v", len(all), err)
	}
	if one, err := Select("fit"); err != nil || len(one) != 1 || one[0].Name != "fit" {
		t.Errorf("%v, error %v", one, err)
	}
	two, err := Select("raft-pipeline", "raft-batching")
	if err != nil || len(two) != 2 || two[0].Name != "raft-batching" {
		t.Errorf("%v, error %v", two, err)
	}
	var unknown *UnknownError
	if _, err := Select("raft-pipelin"); !errors.As(err, &unknown) || !strings.Contains(err.Error(), "raft-pipeline") {
		t.Errorf("error %v", err)
	}
}
