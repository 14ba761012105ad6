package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	testCluster = 0xc1
	testTimeout = 20 * time.Second // of what a test waits for; never reached when it passes
)

// quick is defaultTiming for tests: what is waited for comes soon.
var quick = func() timing {
	t := defaultTiming
	t.handshake = time.Second
	t.ping = 20 * time.Millisecond
	t.idle = 500 * time.Millisecond
	t.backoff = time.Millisecond
	t.maxPause = 20 * time.Millisecond
	t.settled = 50 * time.Millisecond
	t.linger = 200 * time.Millisecond
	return t
}()

// calm is quick, but a machine that is busy with other things is not taken for dead.
var calm = func() timing {
	t := quick
	t.handshake, t.idle, t.linger = defaultTiming.handshake, defaultTiming.idle, defaultTiming.linger
	return t
}()

type event struct {
	peer uint64
	up   bool
	err  error
}

type received struct {
	from   uint64
	stream uint32
	frame  []byte
}

// testHandler records what comes. Its functions may be replaced before the member starts.
type testHandler struct {
	frames   chan received
	events   chan event
	frame    func(from uint64, stream uint32, frame []byte)
	snapshot func(from uint64, meta []byte, body io.Reader) error
	snapCtx  func(context.Context) // if it is set, called with each snapshot's context
	request  func(ctx context.Context, from uint64, request []byte) ([]byte, error)
}

func newHandler() *testHandler {
	h := &testHandler{frames: make(chan received, 100_000), events: make(chan event, 10_000)}
	h.frame = func(from uint64, stream uint32, frame []byte) { h.frames <- received{from, stream, frame} }
	return h
}

func (h *testHandler) HandleFrame(from uint64, stream uint32, frame []byte) {
	h.frame(from, stream, frame)
}
func (h *testHandler) HandleSnapshot(ctx context.Context, from uint64, meta []byte, body io.Reader) error {
	if h.snapCtx != nil {
		h.snapCtx(ctx)
	}
	return h.snapshot(from, meta, body)
}
func (h *testHandler) HandleRequest(ctx context.Context, from uint64, request []byte) ([]byte, error) {
	return h.request(ctx, from, request)
}
func (h *testHandler) PeerUp(id uint64)              { h.events <- event{id, true, nil} }
func (h *testHandler) PeerDown(id uint64, err error) { h.events <- event{id, false, err} }

// logBuffer collects log lines.
type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// member is a transport with its handler.
type member struct {
	*Transport
	*testHandler
	id   uint64
	addr string
	logs *logBuffer
}

// start starts a member on a free port, or on addr if given; change may adapt its options
// and handler.
func start(t testing.TB, id uint64, tm timing, addr string, change func(*Options, *testHandler)) *member {
	t.Helper()
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	m := &member{testHandler: newHandler(), id: id, addr: l.Addr().String(), logs: &logBuffer{}}
	o := Options{
		Self: id, Cluster: testCluster, Settings: telling(testSettings...), Listen: []net.Listener{l}, Handler: m.testHandler,
		Logger: slog.New(slog.NewTextHandler(m.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&o, m.testHandler)
	}
	if m.Transport, err = newTransport(o, tm); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("log of member %d:\n%s", id, m.logs)
		}
	})
	return m
}

// connect makes all members peers of each other.
func connect(all ...*member) {
	var peers []Peer
	for _, m := range all {
		peers = append(peers, Peer{ID: m.id, Addrs: []string{m.addr}, Name: fmt.Sprintf("m%d", m.id)})
	}
	for _, m := range all {
		m.SetPeers(peers)
	}
}

// pair starts two connected members, 1 and 2.
func pair(t testing.TB, change func(*Options, *testHandler)) (a, b *member) {
	t.Helper()
	return pairOf(t, calm, change)
}

func pairOf(t testing.TB, tm timing, change func(*Options, *testHandler)) (a, b *member) {
	t.Helper()
	noLeaks(t)
	a, b = start(t, 1, tm, "", change), start(t, 2, tm, "", change)
	connect(a, b)
	a.expectUp(t, 2)
	b.expectUp(t, 1)
	return a, b
}

func get[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(testTimeout):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

// expectUp waits until the link to a peer is up, whatever happened before.
func (m *member) expectUp(t testing.TB, peer uint64) {
	t.Helper()
	for e := get(t, m.events, "PeerUp"); e.peer != peer || !e.up; {
		e = get(t, m.events, "PeerUp")
	}
}

// expectDown waits until the link to a peer is down and returns why.
func (m *member) expectDown(t testing.TB, peer uint64) error {
	t.Helper()
	for {
		if e := get(t, m.events, "PeerDown"); e.peer == peer && !e.up {
			return e.err
		}
	}
}

// expectRefused waits until the link is down because of a refusal.
func (m *member) expectRefused(t testing.TB, peer uint64, reason Reason, byPeer bool) {
	t.Helper()
	for {
		var h *HandshakeError
		err := m.expectDown(t, peer)
		if !errors.As(err, &h) {
			continue
		}
		if h.Reason != reason || h.ByPeer != byPeer {
			t.Fatalf("got %v, want reason %q, by the peer: %v", err, reason, byPeer)
		}
		return
	}
}

func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(testTimeout); !f(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

// noLeaks checks at the end of the test that no goroutine of this package is left.
func noLeaks(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		var left string
		for end := time.Now().Add(testTimeout); time.Now().Before(end); <-time.After(time.Millisecond) {
			if left = leftovers(); left == "" {
				return
			}
		}
		t.Errorf("goroutines left:\n%s", left)
	})
}

func leftovers() string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var left []string
	for i, g := range strings.Split(string(buf), "\n\n") {
		if i > 0 && strings.Contains(g, "braid/transport.") && !strings.Contains(g, "testing.tRunner") {
			left = append(left, g)
		}
	}
	return strings.Join(left, "\n\n")
}

// stranger connects to a member without being one.
func stranger(t testing.TB, addr string, c *tls.Config) net.Conn {
	t.Helper()
	var conn net.Conn
	var err error
	if c == nil {
		conn, err = net.Dial("tcp", addr)
	} else {
		conn, err = tls.Dial("tcp", addr, c)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// expectClosed reads until the other side ends the connection and returns what it sent.
func expectClosed(t testing.TB, conn net.Conn) []byte {
	t.Helper()
	b, err := io.ReadAll(conn)
	if errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
		t.Fatal("the connection was not closed")
	}
	return b
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// impostor listens, accepts a handshake and answers it with the given bytes (none: it waits).
func impostor(t testing.TB, answer []byte) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			done.Go(func() {
				defer conn.Close()
				b := make([]byte, helloSize)
				if _, err := io.ReadFull(conn, b); err != nil {
					return
				}
				conn.Write(answer)
				io.Copy(io.Discard, conn)
			})
		}
	})
	t.Cleanup(func() { l.Close(); done.Wait() })
	return l.Addr().String()
}

// telling is Options.Settings of a member that never learns others.
func telling(all ...Setting) func() Told { return func() Told { return Told{All: all} } }

// testSettings are the settings of members of tests, and testText their text.
var (
	testSettings = []Setting{{"color", "blue"}, {"size", "7"}}
	testText     = "color=blue\nsize=7\n"
)
