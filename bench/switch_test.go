package bench

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/braidlog/braid/internal/check"
)

func switchConfig() SwitchConfig {
	return SwitchConfig{From: Switchable(), To: Switchable(), Nodes: 3, Clients: 6, Keys: 20, ValSize: 64,
		LargeSize: 1 << 10, Transactions: 0.1, Reads: 0.1, Settle: time.Second, Window: time.Second,
		Timeout:    time.Second,
		CheckLimit: time.Second,
		Switch:     func(context.Context, grpc.ClientConnInterface, string) error { return nil }}
}

func TestSwitchConfigValidate(t *testing.T) {
	good := switchConfig()
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(*SwitchConfig)
		want   string
	}{
		{func(c *SwitchConfig) { c.From = []string{"epaxos"} }, `protocol "epaxos"`},
		{func(c *SwitchConfig) { c.From, c.To = []string{"raft"}, []string{"raft"} }, "nothing to switch"},
		{func(c *SwitchConfig) { c.Nodes = 16 }, "16 members"},
		{func(c *SwitchConfig) { c.Clients = 2 }, "2 clients for 3 members"},
		{func(c *SwitchConfig) { c.Reads = 0.9 }, "no puts left"},
		{func(c *SwitchConfig) { c.LargeShare = 2 }, "2 large values"},
		{func(c *SwitchConfig) { c.Window = 0 }, "times must be positive"},
		{func(c *SwitchConfig) { c.ValSize = 4 }, "values of 4 bytes"},
		{func(c *SwitchConfig) { c.Keys = 0 }, "0 keys"},
	} {
		wrong := switchConfig()
		c.change(&wrong)
		if err := wrong.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

// A path has each switch once, and continues where the last one ended. Extra switches only connect others.
func TestSwitchPath(t *testing.T) {
	for _, c := range []struct {
		from, to string
		steps    int
	}{
		{"raft craft lcr niagara multi-paxos iss", "raft craft lcr niagara multi-paxos iss", 30},
		{"raft", "iss", 1},
		{"raft iss", "raft iss", 2},
		{"raft", "iss lcr craft", 5},
		{"raft lcr", "craft iss", 7},
		{"raft", "raft lcr", 1},
	} {
		config := SwitchConfig{From: strings.Fields(c.from), To: strings.Fields(c.to)}
		path, left := switchPath(config.pairs()), map[switchStep]bool{}
		for _, p := range config.pairs() {
			left[p] = true
		}
		for i, s := range path {
			if i > 0 && path[i-1].To != s.From {
				t.Errorf("%v: step %d does not follow", path, i)
			}
			if !s.extra && !left[s] {
				t.Errorf("%v: step %d is not wanted, or is there twice", path, i)
			}
			delete(left, s)
		}
		if len(left) > 0 || len(path) != c.steps || path[len(path)-1].extra {
			t.Errorf("from %s to %s: %v, without %v; want %d steps", c.from, c.to, path, left, c.steps)
		}
	}
}

func TestLongestPause(t *testing.T) {
	puts := []answeredPut{{0, 10}, {5, 20}, {5, 50}, {45, 55}, {50, 90}}
	for _, c := range []struct{ from, to, want int64 }{
		{0, 100, 35}, {15, 19, 10}, {20, 20, 30}, {21, 22, 30}, {51, 52, 5}, {60, 1000, 910}, {95, 100, 10}, {0, 5, 10},
	} {
		if got := longestPause(puts, c.from, c.to); got != time.Duration(c.want) {
			t.Errorf("between %d and %d: %d, want %d", c.from, c.to, got, c.want)
		}
	}
	if got := longestPause(nil, 5, 9); got != 4 {
		t.Errorf("without puts: %d", got)
	}
}

func TestCountWrites(t *testing.T) {
	history := []check.Operation{
		{Key: "a", Kind: check.Put, Outcome: check.OK}, {Key: "a", Kind: check.Put}, {Key: "a", Kind: check.Get},
		{Key: "a", Kind: check.Swap, Outcome: check.OK}, {Key: "a", Kind: check.Swap, Outcome: check.Failed},
		{Key: "b", Kind: check.Put},
	}
	for _, c := range []struct {
		a, b int64
		want string
	}{{2, 0, ""}, {3, 1, ""}, {1, 0, "key a was written 1 times"}, {4, 0, "key a was written 4 times"},
		{2, 2, "key b was written 2 times"}} {
		got := strings.Join(countWrites(history, map[string]int64{"a": c.a, "b": c.b}), "; ")
		if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
			t.Errorf("%d and %d writes: %q, want %q", c.a, c.b, got, c.want)
		}
	}
}

func TestSwitchResult(t *testing.T) {
	r := SwitchResult{RoundTripMS: 40, Histories: []*Verdict{{Verdict: Linearizable}}, Pairs: []SwitchPair{
		{From: "iss", To: "raft", Failed: "it is away"},
		{From: "raft", To: "iss", PauseMS: 200, PauseRoundTrips: 5, Retried: 2},
		{From: "raft", To: "lcr", PauseMS: 204, Errors: 1, ErrorSample: "odd"},
	}}
	r.finish([]switchStep{{From: "raft", To: "lcr"}, {From: "raft", To: "iss"}, {From: "iss", To: "raft"}})
	if !r.Verified || r.FailedSwitches != 1 || r.WithinAim != 1 || r.LongestPauseMS != 204 || r.Pairs[0].To != "lcr" {
		t.Errorf("%+v", r)
	}
	var b strings.Builder
	r.WriteText(&b)
	for _, want := range []string{"iss to raft failed: it is away\n", "1 errors: odd\n", "1 within 200 ms\n",
		"round trips"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, &b)
		}
	}
}
