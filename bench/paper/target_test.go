package paper

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/internal/testsize"
)

// A small experiment on real clusters: every optimisation off, and all on.
func TestRealExperiment(t *testing.T) {
	testsize.Long(t)
	dir, remove, err := bench.DataDir("")
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	off := Setup{NoBatching: true, NoPipeline: true, NoParallelAppend: true, NoAsyncApply: true,
		ApplyCost: 10 * time.Microsecond, Net: "latency=0.2ms"}
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
			// The leader's own sync may end after the followers have committed a command with theirs. On a busy machine
			// another leader may be elected, which adds an entry.
			if p.Count != 2 || f[Runtime].Min <= 0 || f[P50].Min <= 0 || f[P99].Median < f[P50].Median ||
				f[Replicated].Min <= 0 || f[PerEntry].Min < 0.9 || f[MemberSync].Min <= 0 {
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
	body  int // bytes of each body; successive ones differ
	last  []byte
	wrong int
}

func (p *instant) ProposeWithAsync(command, body []byte, _ braid.ProposeOptions, done func(any, error)) error {
	p.mu.Lock()
	p.seen[binary.LittleEndian.Uint64(command)]++
	if len(body) != p.body || p.body > 0 && bytes.Equal(body, p.last) {
		p.wrong++
	}
	p.last = body
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
	for _, w := range []Work{{Requests: 100}, {Requests: 100, Body: 999}, {Requests: 100, Clients: 7},
		{Requests: 100, Rate: 1e5}, {Requests: 3, Clients: 3}, {Requests: 12_345}} {
		p := &instant{seen: map[uint64]int{}, body: w.Body}
		b := newBurst(w, []proposer{p}, 1000)
		if err := b.run(t.Context()); err != nil {
			t.Fatalf("%+v: %v", w, err)
		}
		for i := range uint64(w.Requests) {
			if p.seen[1000+i] != 1 {
				t.Fatalf("%+v: command %d was sent %d times", w, 1000+i, p.seen[1000+i])
			}
		}
		if p.wrong > 0 {
			t.Errorf("%+v: %d wrong bodies", w, p.wrong)
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
	if err := newBurst(Work{Requests: 5}, []proposer{p}, 0).run(t.Context()); !errors.Is(err, lost) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := newBurst(Work{Requests: 5, Rate: 1}, []proposer{p}, 0).run(ctx); !errors.Is(err, context.Canceled) {
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

// Every kind of work on bodies, on a real cluster of each contestant.
func TestRealBodies(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	for _, c := range []struct {
		series  string
		kept    float64 // by a follower, of a body of 60,000 bytes
		stopped bool    // with two of five members down nothing is committed
	}{{seriesRaft, 60_000, false}, {seriesRS, 20_000, true}, {seriesCraft, 20_000, false}} {
		t.Run(c.series, func(t *testing.T) {
			s := craftSetup(c.series, 5)
			s.Heartbeat, s.SnapshotBytes = 100*time.Millisecond, 1<<30
			const body = 60_000
			target := openReal(t, s)
			f := runReal(t, target, Work{Requests: 10, Clients: 2, Body: body})
			// A follower that did not answer in time makes craft send whole copies. The last entries may be applied before a
			// slow disk has them.
			const most = 0.7
			if f[Kept] < most*c.kept || f[Kept] > body+1000 || f[Written] < most*c.kept || f[Egress] < most*4*c.kept ||
				f[Bandwidth] <= 0 {
				t.Errorf("%+v", f)
			}
			f = runReal(t, target, Work{For: 300 * time.Millisecond, Down: 2, Clients: 3, Body: body})
			if f[Bandwidth] > 0 == c.stopped || f[Throughput] > 0 == c.stopped {
				t.Errorf("with two of five members down: %+v", f)
			}
			f = runReal(t, target, Work{Requests: 2, Clients: 1, Body: body, Reads: 3})
			if f[FirstRead] <= 0 || f[MeanRead] <= 0 || f[FirstLocal] <= 0 || f[FirstLocal] > f[FirstRead] || f[NextLocal] <= 0 {
				t.Errorf("reads: %+v", f)
			}
			if f = runReal(t, target, Work{For: 600 * time.Millisecond, Clients: 2, Payload: 100}); f[Throughput] <= 0 ||
				f[P50] <= 0 {
				t.Errorf("without anybody down: %+v", f)
			}
			if err := target.Check(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func openReal(t *testing.T, s Setup) Target {
	testsize.Long(t)
	t.Helper()
	target, err := Open(memberCommand)(t.Context(), t.TempDir(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := target.Close(); err != nil {
			t.Error(err)
		}
	})
	return target
}

// runReal repeats a run that an election disturbed, as an experiment does: a busy machine may pause for longer than
// the election timeout.
func runReal(t *testing.T, target Target, w Work) Sample {
	t.Helper()
	for try := 1; ; try++ {
		f, err := target.Run(t.Context(), w)
		if err == nil {
			return f
		}
		if try == attempts || !errors.Is(err, errLeaderChanged) {
			t.Fatalf("%+v: %v", w, err)
		}
	}
}

// The check of a cluster: its members must have applied the same commands, with all answered ones.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	target := &braidTarget{sent: 4, applied: 2}
	for range 2 {
		target.members = append(target.members, &member{machine: newMachine(0)})
	}
	apply := func(member int, numbers ...byte) {
		for _, n := range numbers {
			if err := target.members[member].machine.Apply([]braid.Command{{Data: []byte{n, 0, 0, 0, 0, 0, 0, 0}}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	judge := func(want string) {
		t.Helper()
		err := target.Check(t.Context())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	apply(0, 1)
	apply(1, 1)
	judge("of which 2 took effect")
	apply(0, 2)
	judge("member 2 applied 1 of 2")
	apply(1, 2)
	judge("")
	apply(0, 3, 4)
	apply(1, 4, 3)
	judge("in different orders")
	target.applied, target.sent = 2, 3
	judge("3 were sent")
}

func TestLoopsOfClients(t *testing.T) {
	lost := errors.New("lost")
	p := &instant{seen: map[uint64]int{}, body: 10}
	l := startLoops(Work{Clients: 3, Body: 10}, []proposer{p}, 500)
	for len(l.within(0, time.Hour)) < 50 {
		if time.Since(l.began) > 30*time.Second {
			t.Fatal("nothing goes on")
		}
		runtime.Gosched()
	}
	l.stop()
	answered, err := l.wait(t.Context())
	if all := len(l.within(0, time.Hour)); err != nil || answered != l.next.Load() || all != int(answered) || p.most > 3 {
		t.Errorf("%d answered, %d sent, %d measured, %d at once, error %v", answered, l.next.Load(), all, p.most, err)
	}
	for i := range answered {
		if p.seen[500+i] != 1 {
			t.Fatalf("command %d was sent %d times", 500+i, p.seen[500+i])
		}
	}
	if none := l.within(time.Hour, 2*time.Hour); len(none) > 0 {
		t.Errorf("%d answers in the future", len(none))
	}

	p = &instant{seen: map[uint64]int{}, fail: lost}
	l = startLoops(Work{Clients: 2}, []proposer{p}, 0)
	for l.next.Load() < 3 {
		runtime.Gosched()
	}
	l.stop()
	if answered, err := l.wait(t.Context()); answered != 0 || err != nil {
		t.Errorf("%d failures count as answers, error %v", answered, err)
	}
}

func TestSampleOfReads(t *testing.T) {
	const unit = time.Millisecond
	s := sampleOfReads([]time.Duration{10 * unit, unit, 4 * unit}, []time.Duration{9 * unit, 3 * unit, unit})
	if s[FirstRead] != 10 || s[MeanRead] != 5 || s[FirstLocal] != 9 || s[NextLocal] != 1 {
		t.Errorf("%v", s)
	}
}

func TestSpaceFor(t *testing.T) {
	small, large := Setup{Members: 5}, Setup{Members: 7, SnapshotBytes: 10 << 20}
	clusters, need := spaceFor([]Case{
		{Setup: small, Work: Work{Requests: 1000}}, {Setup: small, Work: Work{Requests: 5}},
		{Setup: large, Work: Work{Requests: 8, Body: 1 << 20}, Times: 2}, {Setup: large, Work: Work{Requests: 1}},
	}, 1)
	if want := int64(5*64+7*(8+16)) << 20 * 5 / 4; clusters != 2 || need != want {
		t.Errorf("%d clusters, %d bytes, want %d", clusters, need, want)
	}
	if _, need := spaceFor([]Case{{Setup: large, Work: Work{For: 1, Body: 1}}}, 1); need != 7*(8+20)<<20*5/4 {
		t.Errorf("%d bytes for work without an end", need)
	}
	if _, need := spaceFor([]Case{{Setup: large, Work: Work{For: 1, Clients: 1}}}, 1); need != 7*(4+20)<<20*5/4 {
		t.Errorf("%d bytes for a log without an end", need)
	}
}
