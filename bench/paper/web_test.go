package paper

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/bench/mapkv"
)

// A cluster that serves a map by HTTP: reads and writes are in the log of every member, and a stopped member comes
// back with its map.
func TestRealWeb(t *testing.T) {
	t.Parallel()
	s := issSetup("iss", 3)
	s.Heartbeat, s.HTTP = 100*time.Millisecond, true
	target := openReal(t, s)
	w := Work{For: 300 * time.Millisecond, Rate: 300, At: AtMembers, Payload: 16}
	for _, w.Writes = range []float64{0, 0.5, 1} {
		if f := runReal(t, target, w); f[Throughput] <= 0 || f[P50] <= 0 {
			t.Errorf("%v writes: %v", w.Writes, f)
		}
		if err := target.Check(t.Context()); err != nil {
			t.Error(err)
		}
	}
	cluster := target.(*braidTarget)
	m := cluster.members[2]
	if err := m.stop(); err != nil {
		t.Fatal(err)
	}
	if callers := newWebCallers(&w, cluster.bases()); len(callers) != 4 {
		t.Errorf("%d callers of two members", len(callers))
	}
	if err := cluster.start(m); err != nil {
		t.Fatal(err)
	}
	if err := cluster.converge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := target.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// Protocols without a common order serve it too: members agree on the order of each key, or of each group.
func TestRealWebByKey(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{seriesEPaxos, seriesWPaxos} {
		s := issSetup(protocol, 3)
		s.Heartbeat, s.HTTP = 100*time.Millisecond, true
		target := openReal(t, s)
		if f := runReal(t, target, Work{For: 600 * time.Millisecond, Clients: 12, At: AtMembers, Payload: 16,
			Writes: 0.5}); f[Throughput] <= 0 || f[P50] <= 0 {
			t.Errorf("%s: %v", protocol, f)
		}
		if err := target.Check(t.Context()); err != nil {
			t.Errorf("%s: %v", protocol, err)
		}
	}
}

// Bare servers answer the same clients, and measure their cost.
func TestRealBare(t *testing.T) {
	t.Parallel()
	target := openReal(t, Setup{Members: 2, HTTP: true, Bare: true})
	w := Work{For: 600 * time.Millisecond, Clients: 7, Payload: 16, Writes: 0.5}
	if f := runReal(t, target, w); f[Throughput] <= 0 || f[P50] <= 0 || f[CPU] <= 0 || f[PerCPU] <= 0 {
		t.Errorf("%v", f)
	}
	if err := target.Check(t.Context()); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := target.Run(ctx, w); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// Callers request keys around their own mean, and all these keys exist.
func TestWebKeys(t *testing.T) {
	cluster := &braidTarget{members: []*member{{node: &webNode{}}}}
	callers := newWebCallers(&Work{}, cluster.bases())
	for i, p := range callers {
		c, near := p.(*webCaller), 0
		for range 1000 {
			k := c.key()
			if len(k) != 10 || k < "key0000000" || k >= "key0012000" {
				t.Fatalf("key %q", k)
			}
			if middle := i*2000 + 1000; k >= keyOf(middle-1000) && k < keyOf(middle+1000) {
				near++
			}
		}
		if near < 600 || near > 760 { // 683 are expected within a deviation
			t.Errorf("caller %d: %d of 1000 keys are near its middle", i, near)
		}
	}
	if len(callers) != webCallers {
		t.Errorf("%d callers", len(callers))
	}
}

// Requests that the map refuses, and a member that is down, are errors.
func TestWebErrors(t *testing.T) {
	c := &webCaller{client: http.DefaultClient, base: "http://127.0.0.1:1"}
	if err := c.ask("GET", c.base+"/kv/a", nil); err == nil {
		t.Error("nobody answered, and there is no error")
	}
}

// A snapshot has the counted commands and the map, and the cluster's own commands are not in the map.
func TestMappedSnapshot(t *testing.T) {
	machine, again := newMachine(0), newMachine(0)
	m := &mapped{machine, mapkv.NewMap()}
	put := []byte("\x01\x0akey0000001value") // as mapkv writes it
	commands := []braid.Command{{Position: 1, Data: put}, {Position: 2, Data: slices.Clone(put[:8])}}
	if err := m.Apply(commands); err != nil || commands[0].Result != nil || commands[1].Result != nil {
		t.Fatalf("%v, results %v", err, commands)
	}
	s, err := m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := s.WriteTo(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	other := &mapped{again, mapkv.NewMap()}
	if err := other.Restore(&out); err != nil {
		t.Fatal(err)
	}
	count, hash := machine.m.Digest()
	if c, h := again.m.Digest(); c != 2 || c != count || h != hash {
		t.Errorf("%d commands, hash %x; want %d, %x", c, h, count, hash)
	}
	v, ok := other.state.Get("key0000001")
	if !ok || string(v.Chunks[0].Bytes) != "value" {
		t.Errorf("%v, %v", v, ok)
	}
	if keys, _ := other.state.Len(); keys != 1 {
		t.Errorf("%d keys", keys)
	}
	if err := other.Restore(strings.NewReader("nothing")); err == nil {
		t.Error("a snapshot that is none")
	}
}
