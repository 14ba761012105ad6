package paper

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/braidlog/braid/bench"
)

// A small experiment on real clusters: every optimisation off, and all on.
func TestRealExperiment(t *testing.T) {
	dir, remove, err := bench.DataDir("")
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	off := Setup{NoBatching: true, NoPipeline: true, NoParallelAppend: true, NoAsyncApply: true, ApplyCost: 10 * time.Microsecond, Net: "latency=0.2ms"}
	e := &Experiment{
		Name: "tiny", XName: "requests",
		Cases: []Case{
			{Series: "off", X: 40, Setup: off, Work: Work{Requests: 40}},
			{Series: "on", X: 40, Setup: Setup{}, Work: Work{Requests: 40}},
			{Series: "on", X: 30, Setup: Setup{}, Work: Work{Requests: 30, Rate: 3000}},
			{Series: "on", Part: clients, X: 4, Setup: Setup{}, Work: Work{Requests: 41, Clients: 4}},
		},
		Claims: []Claim{{
			Text: "on is faster", Unit: "×", Holds: atLeast(1),
			Measure: times(Runtime, where{series: "off", x: 40}, where{series: "on", x: 40}),
		}},
	}
	r, err := Run(t.Context(), e, Config{Dir: dir, Rounds: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Series {
		for _, p := range s.Points {
			f := p.Figures
			// The leader's own sync may end after the followers have committed a command with theirs.
			if p.Count != 2 || f[Runtime].Min <= 0 || f[P50].Min <= 0 || f[P99].Median < f[P50].Median || f[Replicated].Min <= 0 || f[PerEntry].Min < 1 || f[MemberSync].Min <= 0 {
				t.Errorf("%s at %v %s: %+v", s.Name, p.X, s.X, p)
			}
		}
	}
	if f := r.at(where{series: "off", x: 40}).Figures[PerEntry]; f.Max != 1 {
		t.Errorf("%v commands in an entry without batching", f.Max)
	}
	if f := r.at(where{series: "on", x: 30}).Figures[Runtime]; f.Min < 29.0/3000*1000 {
		t.Errorf("30 requests at 3000 a second took %v ms", f.Min)
	}
	if len(r.Violations()) > 0 || r.Claims[0].Measured == nil {
		t.Errorf("violations %v, claims %+v", r.Violations(), r.Claims)
	}
}

// instant answers at once and remembers the numbers of the commands.
type instant struct {
	mu    sync.Mutex
	seen  map[uint64]int
	under int
	most  int
	fail  error
}

func (p *instant) ProposeAsync(command []byte, done func(any, error)) error {
	p.mu.Lock()
	p.seen[binary.LittleEndian.Uint64(command)]++
	p.under++
	p.most = max(p.most, p.under)
	p.mu.Unlock()
	go func() {
		p.mu.Lock()
		p.under--
		p.mu.Unlock()
		done(nil, p.fail)
	}()
	return nil
}

func TestBurst(t *testing.T) {
	for _, w := range []Work{{Requests: 100}, {Requests: 100, Clients: 7}, {Requests: 100, Rate: 1e5}, {Requests: 3, Clients: 3}, {Requests: 12_345}} {
		p := &instant{seen: map[uint64]int{}}
		b := newBurst(w, p, 1000)
		if err := b.run(t.Context()); err != nil {
			t.Fatalf("%+v: %v", w, err)
		}
		for i := range uint64(w.Requests) {
			if p.seen[1000+i] != 1 {
				t.Fatalf("%+v: command %d was sent %d times", w, 1000+i, p.seen[1000+i])
			}
		}
		if w.Clients > 0 && p.most > w.Clients {
			t.Errorf("%+v: %d under way at once", w, p.most)
		}
		if l := b.latencies(); len(l) != (w.Requests+b.every-1)/b.every || l[0] < 0 {
			t.Errorf("%+v: %d latencies from %v", w, len(l), l[0])
		}
	}
}

func TestBurstFails(t *testing.T) {
	lost := errors.New("lost")
	p := &instant{seen: map[uint64]int{}, fail: lost}
	if err := newBurst(Work{Requests: 5}, p, 0).run(t.Context()); !errors.Is(err, lost) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := newBurst(Work{Requests: 5, Rate: 1}, p, 0).run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestQuantile(t *testing.T) {
	v := []time.Duration{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for q, want := range map[float64]time.Duration{0: 1, 0.1: 1, 0.5: 5, 0.51: 6, 0.99: 10, 1: 10} {
		if got := quantile(v, q); got != want {
			t.Errorf("quantile(%v) = %v, want %v", q, got, want)
		}
	}
}
