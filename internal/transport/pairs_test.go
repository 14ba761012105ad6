package transport

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/braidlog/braid/internal/transport/netspec"
)

// three starts three connected members, with links as in spec.
func three(t *testing.T, spec string) (all [3]*member) {
	t.Helper()
	noLeaks(t)
	for i := range all {
		all[i] = start(t, uint64(i+1), defaultTiming, "", func(o *Options, h *testHandler) {
			o.Net = parseNet(t, spec)
			h.request = echo
		})
	}
	connect(all[:]...)
	for _, m := range all {
		eventually(t, "links to both others", func() bool {
			p := m.Stats().Peers
			return p[0].Connected && p[1].Connected
		})
	}
	return all
}

// takes measures until frames from a to b need about as long as expected. A busy machine may be late, but not always,
// and no frame may be early.
func takes(t *testing.T, a, b *member, want time.Duration) {
	t.Helper()
	var best time.Duration
	for end := time.Now().Add(testTimeout); time.Now().Before(end); {
		d := oneWay(t, a, b, 5)
		if d[0] < want {
			t.Fatalf("a frame from %d to %d took %v, less than %v", a.id, b.id, d[0], want)
		}
		if best = d[0]; best < want*5/4+3*time.Millisecond {
			return
		}
	}
	t.Errorf("frames from %d to %d take %v, want %v", a.id, b.id, best, want)
}

const ms = time.Millisecond

// TestPairsDiffer: each direction has the latency of the specification, by numbers and by regions.
func TestPairsDiffer(t *testing.T) {
	for _, c := range []struct {
		spec string
		want map[[2]int]time.Duration
	}{
		{"latency=2ms;1~2:latency=12ms;1>3:latency=25ms", map[[2]int]time.Duration{{1, 2}: 12 * ms, {2, 1}: 12 * ms,
			{1, 3}: 25 * ms, {3, 1}: 2 * ms, {2, 3}: 2 * ms}},
		{"regions=eu-west-1+eu-west-2+eu-central-1", map[[2]int]time.Duration{{1, 2}: 7 * ms, {2, 1}: 7 * ms,
			{1, 3}: 13*ms + ms/2, {3, 1}: 13*ms + ms/2, {3, 2}: 9 * ms}},
	} {
		t.Run(c.spec, func(t *testing.T) {
			all := three(t, c.spec)
			for pair, want := range c.want {
				takes(t, all[pair[0]-1], all[pair[1]-1], want)
			}
		})
	}
}

// TestAnswersHaveTheirOwnDelay: an accepted connection is delayed as the path back to its dialer.
func TestAnswersHaveTheirOwnDelay(t *testing.T) {
	all := three(t, "1>2:latency=5ms;2>1:latency=20ms")
	for _, c := range []struct {
		from, to int
		want     time.Duration
	}{{1, 2, 25 * ms}, {2, 1, 25 * ms}, {1, 3, 0}} {
		eventually(t, "a request that takes a round trip", func() bool {
			began := time.Now()
			if _, err := all[c.from-1].Request(t.Context(), uint64(c.to), []byte("x")); err != nil {
				t.Fatal(err)
			}
			d := time.Since(began)
			if d < c.want {
				t.Fatalf("a request from %d to %d took %v, less than %v", c.from, c.to, d, c.want)
			}
			return d < c.want*5/4+5*ms
		})
	}
}

// TestSetNet: what links do can be changed while they are in use, and no connection breaks.
func TestSetNet(t *testing.T) {
	all := three(t, "latency=1ms")
	a, b := all[0], all[1]
	before := a.Stats().Peers[0].Connects
	for _, c := range []struct {
		spec string
		want time.Duration
	}{{"latency=8ms", 8 * ms}, {"latency=3ms", 3 * ms}, {"regions=eu-west-1+eu-central-1", 13*ms + ms/2}, {"", 0},
		{"1~2:latency=6ms", 6 * ms}} {
		for _, m := range all {
			m.SetNet(parseNet(t, c.spec))
		}
		eventually(t, "what was under way has arrived", func() bool { return oneWay(t, a, b, 1)[0] < c.want+20*ms })
		takes(t, a, b, c.want)
	}
	if after := a.Stats().Peers[0].Connects; after != before {
		t.Errorf("%d connections were made, after %d", after, before)
	}
}

// TestSetNetKeepsOrder: frames arrive in order while the latency jumps up and down.
func TestSetNetKeepsOrder(t *testing.T) {
	all := three(t, "latency=5ms")
	a, b := all[0], all[1]
	const n = 300
	for i := range byte(n / 2) {
		for j := range byte(2) {
			a.Send(2, 0, [][]byte{{i, j}})
		}
		a.SetNet(parseNet(t, []string{"latency=5ms", "", "1~2:latency=1ms", "latency=9ms,jitter=4ms",
			"bandwidth=50mbit"}[i%5]))
	}
	for i := range n {
		if f := get(t, b.frames, "frame"); int(f.frame[0]) != i/2 || int(f.frame[1]) != i%2 {
			t.Fatalf("frame %d is % x", i, f.frame)
		}
	}
}

// TestSetNetWhereNothingWas: connections that nothing can delay are reestablished.
func TestSetNetWhereNothingWas(t *testing.T) {
	all := three(t, "")
	a, b := all[0], all[1]
	if _, err := a.Request(t.Context(), 2, []byte("x")); err != nil { // its connection is still open, too
		t.Fatal(err)
	}
	for _, m := range all {
		m.SetNet(parseNet(t, "1~2:latency=9ms"))
	}
	eventually(t, "all connections delay", func() bool {
		select {
		case <-b.frames: // one that arrived late
		default:
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := a.Request(ctx, 2, []byte("x"))
		return err == nil && time.Since(began) >= 18*ms && a.Stats().Peers[0].Connected
	})
	delays(t, a, b, 9*ms)
}

// TestSetNetCuts: a member that is cut off reaches no other and is reached by none, the others still reach each other,
// and the links come back when they are healed.
func TestSetNetCuts(t *testing.T) {
	all := three(t, "")
	a, b, c := all[0], all[1], all[2]
	set := func(spec string) {
		for _, m := range all {
			m.SetNet(parseNet(t, spec))
		}
	}
	request := func(from *member, to uint64) error {
		ctx, cancel := context.WithTimeout(t.Context(), 200*ms)
		defer cancel()
		_, err := from.Request(ctx, to, []byte("x"))
		return err
	}
	set("1~2:loss=100%;1~3:loss=100%")
	for _, way := range []struct {
		from *member
		to   uint64
	}{{a, 2}, {a, 3}, {b, 1}, {c, 1}} {
		for range 3 {
			if request(way.from, way.to) == nil {
				t.Errorf("member %d reaches member %d", way.from.id, way.to)
			}
		}
	}
	eventually(t, "others reach each other", func() bool { return request(b, 3) == nil && request(c, 2) == nil })
	set("")
	eventually(t, "all reach each other", func() bool {
		return request(a, 2) == nil && request(a, 3) == nil && request(b, 1) == nil && request(c, 1) == nil
	})
	takes(t, a, b, 0)
}

// delays waits until frames from one member to another take that long.
func delays(t *testing.T, a, b *member, want time.Duration) {
	t.Helper()
	eventually(t, "frames that are delayed", func() bool {
		began := time.Now()
		if !a.Send(b.id, 0, [][]byte{[]byte("x")}) {
			return false
		}
		select {
		case <-b.frames:
			return time.Since(began) >= want
		case <-time.After(time.Second):
			return false
		}
	})
}

// TestSetNetWithinHandshake: a connection whose handshake is in progress while the emulation begins is delayed, too.
func TestSetNetWithinHandshake(t *testing.T) {
	noLeaks(t)
	a, b := start(t, 1, calm, "", nil), start(t, 2, calm, "", nil)
	held := holdAnswers(t, b.addr)
	b.SetPeers([]Peer{{ID: 1, Addrs: []string{a.addr}, Name: "m1"}, {ID: 2, Addrs: []string{b.addr}, Name: "m2"}})
	a.SetPeers([]Peer{{ID: 1, Addrs: []string{a.addr}, Name: "m1"}, {ID: 2, Addrs: []string{held.addr}, Name: "m2"}})
	select {
	case <-held.first:
	case <-time.After(testTimeout):
		t.Fatal("no handshake")
	}
	a.SetNet(parseNet(t, "latency=9ms"))
	close(held.release)
	delays(t, a, b, 9*ms)
}

// held passes on what comes to it, and withholds the answers until it is released.
type held struct {
	addr    string
	first   chan struct{} // closed when there is an answer
	release chan struct{}
}

func holdAnswers(t *testing.T, to string) *held {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &held{l.Addr().String(), make(chan struct{}), make(chan struct{})}
	var all sync.WaitGroup
	var once sync.Once
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			stop := context.AfterFunc(t.Context(), func() { in.Close(); out.Close() })
			all.Go(func() { io.Copy(out, in); out.Close() })
			all.Go(func() {
				defer stop()
				defer in.Close()
				b := make([]byte, 1)
				if _, err := io.ReadFull(out, b); err != nil {
					return
				}
				once.Do(func() { close(h.first) })
				<-h.release
				if _, err := in.Write(b); err == nil {
					io.Copy(in, out)
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return h
}

// TestNamesComeLater: a member that is not known by name has the latency of all links, until it is.
func TestNamesComeLater(t *testing.T) {
	spec, err := netspec.Parse("latency=2ms;alice~bob:latency=15ms")
	if err != nil {
		t.Fatal(err)
	}
	a, b := pairOf(t, defaultTiming, func(o *Options, _ *testHandler) { o.Net = spec })
	takes(t, a, b, 2*ms)
	peers := []Peer{{ID: 1, Addrs: []string{a.addr}, Name: "alice"}, {ID: 2, Addrs: []string{b.addr}, Name: "bob"}}
	a.SetPeers(peers)
	takes(t, a, b, 15*ms)
	peers[0].Name = "" // who does not know it now does not forget it
	a.SetPeers(peers)
	takes(t, a, b, 15*ms)
}
