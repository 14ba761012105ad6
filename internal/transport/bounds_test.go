package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"testing"
	"time"
)

// talker connects to a member as member 2, and may write frames on a stream.
func talker(t *testing.T, a *member, stream uint32) net.Conn {
	t.Helper()
	conn := stranger(t, a.addr, nil)
	if _, err := conn.Write(greeting(forFrames, stream)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, replySize)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestAHeaderTakesNoMemory: a member that only announces large frames, on many streams, gets no memory for
// them. Large frames of other members still come.
func TestAHeaderTakesNoMemory(t *testing.T) {
	noLeaks(t)
	const limit, streams = 64 << 20, 64
	a := start(t, 1, calm, "", func(o *Options, _ *testHandler) { o.MaxFrameBytes = limit })
	b := start(t, 3, calm, "", func(o *Options, _ *testHandler) { o.MaxFrameBytes = limit })
	peers := []Peer{{ID: 1, Addrs: []string{a.addr}}, {ID: 2}, {ID: 3, Addrs: []string{b.addr}}}
	a.SetPeers(peers)
	b.SetPeers(peers)
	b.expectUp(t, 1)
	var conns []net.Conn
	for stream := range uint32(streams) {
		conns = append(conns, talker(t, a, stream))
	}
	before := allocated()
	for stream, conn := range conns {
		h := header{kind: kindFrame, stream: uint32(stream), length: limit}
		if _, err := conn.Write(appendHeader(nil, h)); err != nil {
			t.Fatal(err)
		}
	}
	big := noise(8 << 20)
	b.Send(1, 0, [][]byte{big})
	if f := get(t, a.frames, "another member's frame"); f.from != 3 || len(f.frame) != len(big) {
		t.Fatalf("got %d bytes of %d", len(f.frame), f.from)
	}
	if n := allocated() - before; n > 128<<20 {
		t.Errorf("%d MiB were allocated", n>>20)
	}
}

// TestLargeFramesComeOneAfterTheOther: frames that are together larger than what may come at a time all come, whole.
func TestLargeFramesComeOneAfterTheOther(t *testing.T) {
	const limit, streams = 6 << 20, 8
	a, b := pair(t, func(o *Options, _ *testHandler) { o.MaxFrameBytes = limit })
	for stream := range uint32(streams) {
		a.Send(2, stream, [][]byte{noise(limit - int(stream))})
	}
	for range streams {
		f := get(t, b.frames, "frame")
		if string(f.frame) != string(noise(limit-int(f.stream))) {
			t.Errorf("the frame of stream %d, %d bytes, is not what was sent", f.stream, len(f.frame))
		}
	}
}

// deaf is a member that accepts connections and reads nothing after the handshake.
func deaf(t *testing.T) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	reply := reply{cluster: testCluster, self: 2, settings: markOf(testText)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			if _, err := io.ReadFull(conn, make([]byte, helloSize+len(testText))); err != nil {
				continue
			}
			conn.Write(reply.encode())
		}
	}()
	t.Cleanup(func() { l.Close(); <-ended })
	return l.Addr().String()
}

// TestRequestsThatWereGivenUp are still to be written to a peer that reads nothing: they count, so that not more
// and more of them wait.
func TestRequestsThatWereGivenUp(t *testing.T) {
	noLeaks(t)
	const limit = 8 << 20
	tm := calm
	tm.write = testTimeout
	a := start(t, 1, tm, "", func(o *Options, _ *testHandler) { o.QueueBytes, o.MaxFrameBytes = limit, 4<<20 })
	a.SetPeers([]Peer{{ID: 2, Addrs: []string{deaf(t)}}})
	busy := 0
	for range 60 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := a.Request(ctx, 2, make([]byte, 1<<20))
		cancel()
		if err == nil {
			t.Fatal("an answer")
		}
		if errors.Is(err, ErrBusy) {
			busy++
		}
	}
	calls := &a.peer(2).calls
	calls.mu.Lock()
	waits := calls.unwritten()
	calls.mu.Unlock()
	if waits > limit+1<<20 || busy == 0 {
		t.Errorf("%d MiB wait, %d requests were refused", waits>>20, busy)
	}
}

// TestWhatAnEndedConnectionHasDoesNotCount: a request that came while its connection ended holds up no other one.
func TestWhatAnEndedConnectionHasDoesNotCount(t *testing.T) {
	const limit = 1 << 20
	a, _ := pair(t, func(o *Options, h *testHandler) { h.request, o.QueueBytes = echo, limit })
	if _, err := a.Request(t.Context(), 2, []byte("first")); err != nil {
		t.Fatal(err)
	}
	calls := &a.peer(2).calls
	calls.mu.Lock()
	conn := calls.conns[0].conn
	calls.mu.Unlock()
	conn.end(errors.New("a test ends it"))
	eventually(t, "the end", func() bool {
		conn.mu.Lock()
		defer conn.mu.Unlock()
		return conn.calls == nil
	})
	conn.q.put(kindRequest, 1, make([]byte, limit))
	if _, err := a.Request(t.Context(), 2, make([]byte, limit/2)); err != nil {
		t.Error(err)
	}
}

// TestASnapshotsHandlerLearnsThatTheSenderIsGone while it reads nothing.
func TestASnapshotsHandlerLearnsThatTheSenderIsGone(t *testing.T) {
	noLeaks(t)
	begun, ended := make(chan struct{}), make(chan struct{})
	a := start(t, 1, quick, "", func(_ *Options, h *testHandler) {
		h.snapCtx = func(ctx context.Context) {
			close(begun)
			<-ctx.Done()
			close(ended)
		}
		h.snapshot = func(uint64, []byte, io.Reader) error { return nil }
	})
	a.SetPeers([]Peer{{ID: 2}})
	conn := stranger(t, a.addr, nil)
	if _, err := conn.Write(append(appendHeader(greeting(forSnapshot, 0), header{kind: kindSnapMeta, length: 1}),
		'm')); err != nil {
		t.Fatal(err)
	}
	get(t, begun, "the snapshot")
	conn.Close()
	get(t, ended, "the end of its context")
}
