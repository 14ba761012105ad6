package transport

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// TestNetworkCards: streams are spread over a peer's addresses, and continue over another when one
// is dead.
func TestNetworkCards(t *testing.T) {
	noLeaks(t)
	second, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead.Close()
	a := start(t, 1, calm, "", nil)
	b := start(t, 2, calm, "", func(o *Options, h *testHandler) {
		o.Listen = append(o.Listen, second)
		h.request = echo
	})
	a.SetPeers([]Peer{{ID: 2, Addrs: []string{b.addr, second.Addr().String()}}})
	b.SetPeers([]Peer{{ID: 1, Addrs: []string{dead.Addr().String(), a.addr}}})
	a.expectUp(t, 2)
	for stream := range uint32(4) {
		a.Send(2, stream, [][]byte{{byte(stream)}})
	}
	for range 4 {
		if f := get(t, b.frames, "frame"); uint32(f.frame[0]) != f.stream {
			t.Errorf("got %+v", f)
		}
	}
	on := map[string]int{}
	b.mu.Lock()
	for _, in := range b.inbound {
		on[in.conn.LocalAddr().String()]++
	}
	b.mu.Unlock()
	if on[b.addr] != 2 || on[second.Addr().String()] != 2 {
		t.Errorf("connections per card: %v", on)
	}
	b.expectUp(t, 1) // over the address that works
	a.SetPeers([]Peer{{ID: 2, Addrs: []string{dead.Addr().String(), b.addr}}})
	if _, err := a.Request(t.Context(), 2, nil); err != nil {
		t.Errorf("with one of two cards dead: %v", err)
	}
}

// TestMovedConnections: a connection to an address that is no longer the peer's is reestablished.
func TestMovedConnections(t *testing.T) {
	a, b := pair(t, nil)
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.opt.Listen = append(b.opt.Listen, other)
	b.spawn(func() { b.listen(1, other) })
	a.SetPeers([]Peer{{ID: 2, Addrs: []string{other.Addr().String()}}})
	a.expectDown(t, 2)
	a.expectUp(t, 2)
	a.SetPeers([]Peer{{ID: 2}})
	a.expectDown(t, 2)
	eventually(t, "the reason in the stats", func() bool {
		return strings.Contains(a.Stats().Peers[0].LastError, "no address is known")
	})
}

// TestStuckHandler: while a frame is being handled, a new connection of its stream waits, is
// refused as busy, and gets through when the handler returns; other streams continue.
func TestStuckHandler(t *testing.T) {
	release, stuck := make(chan struct{}), make(chan struct{}, 10)
	a, b := pairOf(t, quick, func(_ *Options, h *testHandler) {
		h.frame = func(from uint64, stream uint32, frame []byte) {
			if string(frame) == "stuck" {
				stuck <- struct{}{}
				<-release
			}
			h.frames <- received{from, stream, frame}
		}
	})
	a.Send(2, 5, [][]byte{[]byte("stuck")})
	get(t, stuck, "frame")
	(*a.peer(2).senders.Load())[5].moved(nil) // breaks the connection
	var h *HandshakeError
	for err := a.expectDown(t, 2); !errors.As(err, &h); {
		err = a.expectDown(t, 2)
	}
	if h.Reason != ReasonBusy || !h.ByPeer {
		t.Errorf("got %v", h)
	}
	a.Send(2, 6, [][]byte{[]byte("another")})
	if f := get(t, b.frames, "frame"); f.stream != 6 {
		t.Errorf("got %+v", f)
	}
	close(release)
	if f := get(t, b.frames, "frame"); string(f.frame) != "stuck" {
		t.Errorf("got %+v", f)
	}
	a.expectUp(t, 2)
}

// The reason of a link that is down has the address once, and no member, which the line of the log has.
func TestReasonOfALinkThatIsDown(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{Port: 1}, Err: errors.New("connection refused")}
	for want, err := range map[string]error{
		"dial 10.0.0.1:2380: connection refused": &LinkError{Peer: 7, Op: "dial 10.0.0.1:2380", Err: refused},
		"receive: EOF":                           &LinkError{Peer: 7, Op: "receive", Err: io.EOF},
		"no address":                             errors.New("no address"),
	} {
		if got := linkReason(err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
