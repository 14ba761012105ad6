package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braidlog/braid/internal/transport/netspec"
)

// TestCloseEndsEverything closes members in the middle of all kinds of traffic.
func TestCloseEndsEverything(t *testing.T) {
	ca := newAuthority(t)
	for _, spec := range []string{"", "latency=20ms,bandwidth=8mbit", "tls"} {
		t.Run(spec, func(t *testing.T) {
			var emulation netspec.Spec
			if spec != "tls" {
				emulation = parseNet(t, spec)
			}
			a, b := pairOf(t, defaultTiming, func(o *Options, h *testHandler) {
				o.Net = emulation
				if spec == "tls" {
					o.TLS = ca.member(t)
				}
				h.frame = func(uint64, uint32, []byte) {}
				h.request = func(ctx context.Context, _ uint64, _ []byte) ([]byte, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				h.snapshot = func(_ uint64, _ []byte, body io.Reader) error {
					_, err := io.Copy(io.Discard, body)
					return err
				}
			})
			var busy sync.WaitGroup
			begun := make(chan struct{}, 4)
			for _, m := range []*member{a, b} {
				other := 3 - m.id
				for s := range uint32(4) {
					for range 50 {
						m.Send(other, s, [][]byte{make([]byte, 100_000)})
					}
				}
				busy.Go(func() {
					begun <- struct{}{}
					if _, err := m.Request(t.Context(), other, nil); err == nil {
						t.Error("a request was answered")
					}
				})
				busy.Go(func() {
					err := m.SendSnapshot(t.Context(), other, nil, func(w io.Writer) error {
						begun <- struct{}{}
						for {
							if _, err := w.Write(make([]byte, 1<<20)); err != nil {
								return err
							}
						}
					})
					if err == nil {
						t.Error("an endless snapshot was sent")
					}
				})
			}
			for range 4 {
				get(t, begun, "beginning")
			}
			for _, m := range []*member{a, b} {
				began := time.Now()
				if err := m.Close(); err != nil {
					t.Error(err)
				}
				if d := time.Since(began); d > defaultTiming.handshake-time.Second {
					t.Errorf("Close took %v", d)
				}
				if m.Send(3-m.id, 9, nil) && m.Stats().Peers[0].QueueBytes > headerSize {
					t.Error("something is left in the queues")
				}
				m.SetPeers([]Peer{{ID: 8, Addrs: []string{"127.0.0.1:1"}}})
				if err := m.SendSnapshot(t.Context(), 3-m.id, nil, send(nil)); err == nil {
					t.Error("sent a snapshot after Close")
				}
			}
			busy.Wait()
		})
	}
}

// TestAnOrderlyCloseIsNoFault: the other member logs it once, without a warning, and not that no one listens there.
func TestAnOrderlyCloseIsNoFault(t *testing.T) {
	a, b := pair(t, nil)
	a.Send(2, 0, [][]byte{[]byte("x")})
	get(t, b.frames, "a frame")       // b reads the connection
	connected := len(a.logs.String()) // b refuses a before it knows a
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	a.expectDown(t, 2) // the peer stops
	a.expectDown(t, 2) // no one listens at its address
	logs := a.logs.String()[connected:]
	if n := strings.Count(logs, "link down"); n != 1 || !strings.Contains(logs, "the peer stops") ||
		strings.Contains(logs, "WARN") {
		t.Errorf("%d lines say that the link is down:\n%s", n, logs)
	}
}

// TestAListenerThatIsClosed by something else is reported: the member cannot be reached any more.
func TestAListenerThatIsClosed(t *testing.T) {
	deaf := make(chan error, 1)
	var l net.Listener
	m := start(t, 1, calm, "", func(o *Options, _ *testHandler) {
		l, o.Deaf = o.Listen[0], func(err error) { deaf <- err }
	})
	l.Close()
	var closed *ListenerError
	if err := get(t, deaf, "the report"); !errors.As(err, &closed) || closed.Addr != m.addr ||
		!errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}
