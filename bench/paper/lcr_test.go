package paper

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/internal/testsize"
)

// The bound, with known results.
func TestBound(t *testing.T) {
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 0.006*math.Abs(want) {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	for n, want := range map[int]float64{5: 1.81, 7: 1.92, 9: 1.99} {
		b := lcrBound(n, 0.56)
		near("the bound of a busy leader", b.leaderBound(), want)
		near("Raft's rate", b.raft().rate(), 16)
		near("Raft's latency", b.raft().transactional(), 2.5)
	}
	for n, want := range map[int]float64{5: 0.96, 7: 0.92, 9: 0.89} {
		b := lcrBound(n, 0.56)
		near("Raft's rate, played", b.raft().played(), 16)
		if got := b.played() / b.raft().played() / b.leaderBound(); math.Abs(got-want) > 0.01 {
			t.Errorf("40 clients at %d members reach %v of the bound, want %v", n, got, want)
		}
	}
	five, nine := lcrBound(5, 0.56), lcrBound(9, 0.56)
	near("5 members in closed loops", five.closedLoop(), 1.81)
	near("9 members in closed loops", nine.closedLoop(), 40/(1+0.44*8/9)/16)
	near("transactional latency with 5 members", five.transactional(), 1.85)
	// With 9 members no command waits: a round trip, and the path to the leader.
	near("transactional latency with 9 members", nine.transactional(), 1+8/9.)
	near("how much quicker that is", nine.quicker(), 100*(1-(1+8/9.)/2.5))
	few := bound{5, 8, 16, 0.25}
	near("few clients", few.raft().rate(), 8/1.8)
	near("few clients with Raft", few.raft().transactional(), 1.8)
	near("few clients gain what blind commands save", few.closedLoop(), 1.8/1.6)
}

func TestNetsOfLCR(t *testing.T) {
	for l, want := range map[float64]string{0: "", 0.05: "latency=0.05ms,jitter=0.05ms", 2.5: "latency=2.5ms,jitter=0.1ms",
		30: "latency=30ms,jitter=0.1ms"} {
		if net := lcrNet(l); net != want {
			t.Errorf("%v ms: %q, want %q", l, net, want)
		}
	}
}

func TestMix(t *testing.T) {
	w := Work{Blind: 0.4}
	one, again, other := w.mix(1, 3), w.mix(1, 3), w.mix(2, 3)
	blind, differ := 0, 0
	const n = 10_000
	for range n {
		o := one.next(nil)
		if o.Blind {
			blind++
		}
		if o.Blind != (o.Mode == braid.ModeAccepted) || o.Blind != again.next(nil).Blind {
			t.Fatalf("options %+v", o)
		}
		if o.Blind != other.next(nil).Blind {
			differ++
		}
	}
	if blind < 37*n/100 || blind > 43*n/100 || differ == 0 {
		t.Errorf("%d of %d are blind, and %d differ between clients", blind, n, differ)
	}
	confirmed := Work{Blind: 1, Confirmed: true}
	m := confirmed.mix(1, 3)
	if o := m.next(nil); !o.Blind || o.Mode != braid.ModeConfirmed {
		t.Errorf("confirmed: %+v", o)
	}
	apart, blindly := Work{Blind: 0.4, Apart: true}, 0
	for client := range 40 {
		m := apart.mix(client, 3)
		first := m.next(nil).Blind
		for range 10 {
			if m.next(nil).Blind != first {
				t.Fatalf("client %d does both", client)
			}
		}
		if first {
			blindly++
		}
	}
	if blindly != 16 {
		t.Errorf("%d of 40 clients are blind, want 16", blindly)
	}
	none := Work{}
	if m = none.mix(1, 3); m.next(nil).Blind {
		t.Error("blind without a share")
	}
}

func TestAnswersByKindAndMember(t *testing.T) {
	const unit = time.Millisecond
	done := []answered{{took: 9 * unit}, {took: 5 * unit, member: 1}, {took: 2 * unit, blind: true},
		{took: unit, blind: true, member: 1}, {took: 7 * unit}}
	s := Sample{}
	s.addAnswers(done, &Work{Blind: 0.5})
	if s[P50] != 5 || s[PlainP50] != 7 || s[PlainMean] != 7 || s[BlindP50] != 1 || s[BlindMean] != 1.5 {
		t.Errorf("%v", s)
	}
	s = Sample{}
	s.addAnswers(done, &Work{Blind: 0.5, Of: 2})
	if s[P50] != 1 || s[PlainP50] != 5 || s[BlindP50] != 1 {
		t.Errorf("of member 2: %v", s)
	}
	s = Sample{}
	if s.addAnswers(done, &Work{}); len(s) != 3 {
		t.Errorf("where nothing is blind: %v", s)
	}
}

// Each of the experiments of LCR and ISS on a small scale, on real clusters of three members: one point for each
// contestant and kind of work that no earlier experiment has.
func TestRealInSmall(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	dir, remove, err := bench.DataDir("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remove)
	seen := map[kind]bool{}
	for _, e := range Experiments() {
		if !strings.HasPrefix(e.Name, "lcr-") && !strings.HasPrefix(e.Name, "iss-") {
			continue
		}
		small := &Experiment{Name: e.Name, XName: e.XName, Cases: inSmall(e.Cases, seen)}
		if len(small.Cases) == 0 {
			continue // it is another view of an earlier run
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel() // members wait for each other most of the time
			var wrong []string
			for range 3 { // on a busy machine a leader may change, or nothing be answered in a moment, but not always
				if wrong = wrongInSmall(t, small, dir); len(wrong) == 0 {
					return
				}
			}
			t.Error(strings.Join(wrong, "\n"))
		})
	}
}

// wrongInSmall runs an experiment and returns what is wrong with its figures.
func wrongInSmall(t *testing.T, e *Experiment, dir string) (wrong []string) {
	t.Helper()
	r, err := Run(t.Context(), e, Config{Dir: dir, Rounds: 1, Member: memberCommand})
	if err != nil {
		return []string{err.Error()}
	}
	for _, v := range r.Violations() {
		t.Errorf("%v", v) // it must never be
	}
	for _, s := range r.Series {
		for _, p := range s.Points {
			if strings.HasPrefix(s.X, bySecond) {
				continue // some of them have no answers
			}
			// The time before a member's crash is short in this test.
			if p.Figures[Throughput].Min <= 0 && !strings.HasSuffix(e.Name, "-failures") || p.Figures[P50].Min <= 0 {
				wrong = append(wrong, fmt.Sprintf("%s at %v %s: %+v", s.Name, p.X, s.X, p.Figures))
			}
		}
	}
	return wrong
}

// kind is the kind of a case, without quantities.
type kind struct {
	setup                    Setup
	at                       Place
	rate, of, blind          bool
	confirmed, moved, faults bool
}

// inSmall returns cases with few members that work for a moment: the first of each new kind.
func inSmall(cases []Case, seen map[kind]bool) (small []Case) {
	for _, c := range cases {
		w := &c.Work
		c.Setup.Members, c.Setup.Heartbeat, c.Setup.SnapshotBytes = 3, 100*time.Millisecond, 16<<20
		k := kind{c.Setup, w.At, w.Rate > 0, w.Of > 0, w.Blind > 0, w.Confirmed, w.Leader > 1, w.Faults != nil}
		if _, given := k.setup.Values.Get("epochs"); given {
			k.setup.set("epochs=any") // the number of slots makes no difference
		}
		if seen[k] {
			continue
		}
		seen[k] = true
		w.For, w.Clients, w.Rate = 300*time.Millisecond, min(w.Clients, 10), min(w.Rate, 200)
		if w.Faults != nil {
			f := &Faults{Lead: time.Second, Every: 100 * time.Millisecond, Part: w.Faults.Part}
			if w.Faults.Back > 0 {
				f.Down, f.Back = 200*time.Millisecond, 600*time.Millisecond
			}
			if w.Faults.Return > 0 {
				f.Return = 1500 * time.Millisecond
			}
			w.Faults = f
			w.For = 2 * time.Second // whether or not there is a new leader by then
		}
		w.Of, w.Leader = min(w.Of, 3), min(w.Leader, 3)
		small = append(small, c)
	}
	return small
}

func TestPause(t *testing.T) {
	const unit = time.Millisecond
	done := []answered{{at: 12 * unit}, {at: 30 * unit, blind: true}, {at: 35 * unit}, {at: 5 * unit}, {at: 99 * unit}}
	for _, c := range []struct {
		plain, blind bool
		want         time.Duration
	}{{true, true, 18 * unit}, {true, false, 23 * unit}, {false, true, 20 * unit}, {false, false, 40 * unit}} {
		if got := pause(done, 10*unit, 50*unit, c.plain, c.blind); got != c.want {
			t.Errorf("plain %v, blind %v: %v, want %v", c.plain, c.blind, got, c.want)
		}
	}
}

// Clients of a stopped member continue at the next running one, and return.
func TestHome(t *testing.T) {
	var members []*member
	var doors []*fakeNode
	for range 3 {
		m, n := &member{}, &fakeNode{instant: instant{seen: map[uint64]int{}}}
		m.door.set(n)
		members, doors = append(members, m), append(doors, n)
	}
	h := &home{members, 1}
	at := func(want int) {
		t.Helper()
		before := len(doors[want].seen)
		if err := h.ProposeWithAsync(binary.LittleEndian.AppendUint64(nil, uint64(before)), nil, braid.ProposeOptions{},
			func(any, error) {}); err != nil || len(doors[want].seen) != before+1 {
			t.Errorf("not at member %d, error %v", want, err)
		}
	}
	at(1)
	members[1].door.set(nil)
	at(2)
	members[2].door.set(nil)
	at(0)
	members[1].door.set(doors[1])
	at(1)
	members[0].door.set(nil)
	members[1].door.set(nil)
	if err := h.ProposeWithAsync(nil, nil, braid.ProposeOptions{}, nil); err == nil {
		t.Error("a command at no member")
	}
}

// fakeNode is a node that only answers.
type fakeNode struct {
	node
	instant
}

func (n *fakeNode) ProposeWithAsync(command, body []byte, o braid.ProposeOptions, done func(any, error)) error {
	return n.instant.ProposeWithAsync(command, body, o, done)
}

// A running cluster changes its links and its leader, and returns to its setup.
func TestRealArrange(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	s := lcrSetup("lcr", 3)
	s.Heartbeat = 100 * time.Millisecond
	target := openReal(t, s)
	w := Work{For: 500 * time.Millisecond, Clients: 6, At: AtMembers, Blind: 0.5}
	for leader := 1; leader <= 3; leader++ {
		w.Leader, w.Net = leader, "latency=20ms"
		if f := runReal(t, target, w); f[PlainP50] < 40 || f[BlindP50] < 40 {
			t.Errorf("a latency of 20 ms, one way: %v", f)
		}
		if m, err := target.(*braidTarget).awaitLeader(t.Context()); err != nil ||
			m != target.(*braidTarget).members[leader-1] {
			t.Errorf("member %d does not lead, error %v", leader, err)
		}
	}
	w.Net, w.At = "", AtFollowers
	runReal(t, target, w)
	if net := target.(*braidTarget).net; net != "" {
		t.Errorf("links are still %q", net)
	}
	if err := target.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
