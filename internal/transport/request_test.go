package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

func echo(_ context.Context, from uint64, request []byte) ([]byte, error) {
	if bytes.HasPrefix(request, []byte("fail")) {
		return nil, fmt.Errorf("no %s for %d", request, from)
	}
	return append([]byte("answer to: "), request...), nil
}

func TestRequests(t *testing.T) {
	a, b := pair(t, func(o *Options, h *testHandler) { h.request = echo; o.MaxFrameBytes = 2 << 20 })
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			q := bytes.Repeat([]byte{byte(i)}, 1+i*100)
			r, err := a.Request(t.Context(), 2, q)
			if err != nil || string(r) != "answer to: "+string(q) {
				t.Errorf("request %d: %.20q, %v", i, r, err)
			}
		})
		all.Go(func() {
			var remote *RemoteError
			_, err := b.Request(t.Context(), 1, fmt.Appendf(nil, "fail%d", i))
			if !errors.As(err, &remote) || remote.Peer != 1 || remote.Text != fmt.Sprintf("no fail%d for 2", i) {
				t.Errorf("got %v", err)
			}
		})
	}
	all.Wait()
	if n := a.Stats().Peers[0].Connects; n != 2 {
		t.Errorf("%d connections, want one for frames and one for requests", n)
	}
	var size *SizeError
	if _, err := a.Request(t.Context(), 2, make([]byte, 2<<20)); !errors.As(err, &size) {
		t.Errorf("got %v", err)
	}
	if _, err := a.Request(t.Context(), 9, nil); !errors.Is(err, ErrUnknownPeer) {
		t.Errorf("got %v", err)
	}
	if _, err := a.Request(t.Context(), 2, make([]byte, 2<<20-8)); err == nil ||
		!strings.Contains(err.Error(), "answer of") {
		t.Errorf("got %v", err) // the answer is larger than the request
	}
}

func TestRequestsEnd(t *testing.T) {
	begun, ended := make(chan time.Duration, 10), make(chan error, 10)
	a, b := pair(t, func(o *Options, h *testHandler) {
		o.MaxRequests = 2
		h.request = func(ctx context.Context, _ uint64, _ []byte) ([]byte, error) {
			until, _ := ctx.Deadline()
			begun <- time.Until(until)
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		}
	})
	ask := func(ctx context.Context) chan error {
		c := make(chan error, 1)
		go func() {
			_, err := a.Request(ctx, 2, []byte("x"))
			c <- err
		}()
		return c
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	one, two := ask(ctx), ask(t.Context())
	for range 2 {
		if d := get(t, begun, "request"); d <= quick.request-time.Minute || d > time.Hour {
			t.Errorf("the handler has %v", d)
		}
	}
	if _, err := a.Request(t.Context(), 2, nil); !errors.Is(err, ErrBusy) {
		t.Errorf("a third request: %v", err)
	}
	cancel() // the caller cancels: the handler ends, too
	var link *LinkError
	if err := get(t, one, "end of the request"); !errors.Is(err, context.Canceled) || !errors.As(err, &link) ||
		!link.Sent {
		t.Errorf("got %v", err)
	}
	get(t, ended, "end of the handler")
	if err := b.Close(); err != nil { // the peer stops: so do handler and caller
		t.Fatal(err)
	}
	get(t, ended, "end of the handler")
	if err := get(t, two, "end of the request"); !errors.As(err, &link) && !errors.As(err, new(*RemoteError)) {
		t.Errorf("got %v", err)
	}
	if _, err := a.Request(t.Context(), 2, nil); !errors.As(err, &link) || link.Sent {
		t.Errorf("got %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Request(t.Context(), 2, nil); !errors.As(err, &link) || link.Sent {
		t.Errorf("got %v", err)
	}
}

func TestRequestEndsAtItsDeadline(t *testing.T) {
	a, _ := pair(t, func(_ *Options, h *testHandler) {
		h.request = func(ctx context.Context, _ uint64, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := a.Request(ctx, 2, nil); err == nil {
		t.Error("answered")
	}
	a.SetLink(2, LinkFault{Drop: true})
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := a.Request(ctx, 2, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("over a cut link: %v", err)
	}
}

// Requests to a peer with several network cards take turns over all of them, so that large
// answers have the bandwidth of all; without one of its cards they still come through.
func TestRequestsOverAllCards(t *testing.T) {
	noLeaks(t)
	const cards = 3
	var addrs []string
	card := func(l net.Listener, err error) net.Listener {
		if err != nil {
			t.Fatal(err)
		}
		addrs = append(addrs, l.Addr().String())
		return l
	}
	accepted := map[string]int{} // connections, by their card
	a := start(t, 1, calm, "", nil)
	b := start(t, 2, calm, "", func(o *Options, h *testHandler) {
		h.request = echo
		o.Listen[0].Close()
		o.Listen = nil
		for range cards {
			o.Listen = append(o.Listen, card(net.Listen("tcp", "127.0.0.1:0")))
		}
	})
	peers := []Peer{{ID: 1, Addrs: []string{a.addr}}, {ID: 2, Addrs: addrs}}
	a.SetPeers(peers)
	b.SetPeers(peers)
	a.expectUp(t, 2)
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			q := fmt.Sprint(i)
			if r, err := a.Request(t.Context(), 2, []byte(q)); err != nil || string(r) != "answer to: "+q {
				t.Errorf("request %d: %q, %v", i, r, err)
			}
		})
	}
	all.Wait()
	b.mu.Lock()
	for key, in := range b.inbound {
		if key.what == forRequests && key.from == 1 {
			accepted[in.conn.LocalAddr().String()]++
		}
	}
	b.mu.Unlock()
	if len(accepted) != cards {
		t.Errorf("requests came over %v, want all of %v", accepted, addrs)
	}
	for _, n := range accepted {
		if n != 1 {
			t.Errorf("connections by card: %v", accepted)
		}
	}

	b.opt.Listen[1].Close()
	b.mu.Lock()
	for key, in := range b.inbound {
		if key.what == forRequests && in.conn.LocalAddr().String() == addrs[1] {
			in.end(ErrReplaced)
		}
	}
	b.mu.Unlock()
	eventually(t, "requests in a row that all come through", func() bool {
		for range 2 * cards {
			if _, err := a.Request(t.Context(), 2, []byte("x")); err != nil {
				return false
			}
		}
		return true
	})
}
