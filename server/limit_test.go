package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

func TestConnectionShares(t *testing.T) {
	for descriptors, want := range map[int][2]int{
		16: {3, 1}, 64: {12, 4}, 300: {132, 18}, 1024: {842, 32}, 1 << 16: {1<<16 - 1<<13 - 32, 32},
	} {
		clients, metrics := connectionShares(descriptors)
		require.Equal(t, want, [2]int{clients, metrics}, "%d descriptors", descriptors)
	}
}

// accept accepts connections of a listener as a server does.
func accept(l net.Listener) (conns chan net.Conn, ended chan error) {
	conns, ended = make(chan net.Conn, 10), make(chan error, 1)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			conns <- conn
		}
	}()
	return conns, ended
}

// TestConnectionsAreLimitedOverAllListeners has two listeners share three connections. The fourth
// client waits until one is closed, which counts once however often it is closed.
func TestConnectionsAreLimitedOverAllListeners(t *testing.T) {
	limit := newConnLimit(3, 0, slog.New(slog.DiscardHandler))
	var plain []net.Listener
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		plain = append(plain, l)
	}
	listeners := limit.listeners(plain)
	first, ended1 := accept(listeners[0])
	second, ended2 := accept(listeners[1])
	dial := func(i int) {
		conn, err := net.Dial("tcp", listeners[i].Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
	}
	take := func(conns chan net.Conn) net.Conn {
		select {
		case conn := <-conns:
			return conn
		case <-time.After(10 * time.Second):
			require.Fail(t, "no connection is accepted")
			return nil
		}
	}
	dial(0)
	dial(1)
	dial(1)
	a, b, c := take(first), take(second), take(second)
	dial(0)
	dial(1)
	require.Eventually(t, func() bool {
		limit.mu.Lock()
		defer limit.mu.Unlock()
		return !limit.warned.IsZero()
	}, 10*time.Second, time.Millisecond, "others wait")
	require.Empty(t, first)
	require.Empty(t, second)
	a.Close()
	a.Close()
	require.Eventually(t, func() bool { return len(first)+len(second) == 1 }, 10*time.Second, time.Millisecond)
	require.Equal(t, 3, limit.Open())
	b.Close()
	take(first).Close()
	take(second).Close()
	c.Close()
	require.Zero(t, limit.Open())
	for i, ended := range []chan error{ended1, ended2} {
		require.NoError(t, listeners[i].Close())
		require.ErrorIs(t, <-ended, net.ErrClosed)
	}
}

// TestAFullListenerCloses does not wait for a connection to end.
func TestAFullListenerCloses(t *testing.T) {
	limit := newConnLimit(1, 0, slog.New(slog.DiscardHandler))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l = limit.listeners([]net.Listener{l})[0]
	conns, ended := accept(l)
	for range 2 {
		conn, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
	}
	defer (<-conns).Close()
	require.NoError(t, l.Close())
	require.ErrorIs(t, <-ended, net.ErrClosed)
}

// TestClientsHaveTheirShare: connections beyond a client's share are closed at once, and others get in. 127.0.0.2 is
// another client than 127.0.0.1.
func TestClientsHaveTheirShare(t *testing.T) {
	limit := newConnLimit(100, 2, slog.New(slog.DiscardHandler))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l = limit.listeners([]net.Listener{l})[0]
	conns, ended := accept(l)
	dial := func(from string) net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		conn, err := d.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	dial("127.0.0.1")
	dial("127.0.0.1")
	first := <-conns
	<-conns
	third := dial("127.0.0.1")
	require.NoError(t, third.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err = third.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "it is closed")
	require.EqualValues(t, 1, limit.refused.Load())
	dial("127.0.0.2")
	<-conns
	require.NoError(t, first.Close())
	dial("127.0.0.1")
	<-conns
	require.Equal(t, 3, limit.Open())
	require.NoError(t, l.Close())
	require.ErrorIs(t, <-ended, net.ErrClosed)
}

func TestClientOf(t *testing.T) {
	for text, want := range map[string]string{
		"10.1.2.3:4": "10.1.2.3", "[::ffff:10.1.2.3]:4": "10.1.2.3", "[2001:db8:1:2:3::4]:5": "2001:db8:1:2::/64",
		"[2001:db8:1:2:ffff::4]:5": "2001:db8:1:2::/64", "[fe80::1%lo]:5": "fe80::/64",
	} {
		require.Equal(t, want, clientOf(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text))))
	}
	require.Empty(t, clientOf(&net.UnixAddr{Name: "/x"}))
	require.Empty(t, clientOf(nil))
}

// connFrom returns a connection from a local address, which makes its calls those of another client.
func (f *fixture) connFrom(t testing.TB, from string) *grpc.ClientConn {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := grpc.NewClient("passthrough:///"+f.addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", addr)
		}))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestRequestsOfOneClient: a client has as many calls in progress as it may have, over all of its connections. A
// further one is refused, which is safe to repeat; another client's is answered.
func TestRequestsOfOneClient(t *testing.T) {
	f := start(t, func(c *Config) { c.MaxRequestsPerClient = 3 })
	ctx := testContext(t)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	for range 3 {
		stream, err := pb.NewWatchClient(f.connFrom(t, "127.0.0.2")).Watch(watching)
		require.NoError(t, err)
		w := &rawWatch{t, stream}
		require.True(t, w.create(&pb.WatchCreateRequest{Key: []byte("k")}).Created)
	}
	kv := pb.NewKVClient(f.connFrom(t, "127.0.0.2"))
	put := func() error { return second(kv.Put(ctx, &pb.PutRequest{Key: []byte("k")})) }
	requireStatus(t, rpctypes.ErrGRPCRequestTooManyRequests, put())
	require.NoError(t, second(f.client.Put(ctx, "k", "v")), "127.0.0.1")
	stop()
	eventually(t, "its requests to be taken again", func() bool { return put() == nil })
	require.Positive(t, f.measured().RefusedRequests)
}

// TestJSONCountsForItsClient: what a client asks for as JSON counts, as its other calls do.
func TestJSONCountsForItsClient(t *testing.T) {
	f := start(t, func(c *Config) { c.MaxRequestsPerClient = 1 })
	from := func(ip string) *http.Client {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
		web := &http.Transport{DialContext: dialer.DialContext}
		t.Cleanup(web.CloseIdleConnections)
		return &http.Client{Transport: web}
	}
	watching, stop := context.WithCancel(testContext(t))
	defer stop()
	r, err := http.NewRequestWithContext(watching, http.MethodPost, "http://"+f.addr+"/v3/watch",
		strings.NewReader(`{"create_request":{"key":"aw=="}}`))
	require.NoError(t, err)
	watch, err := from("127.0.0.2").Do(r)
	require.NoError(t, err)
	defer watch.Body.Close()
	require.Equal(t, http.StatusOK, watch.StatusCode)
	get := func(ip string) (int, string) {
		return do(t, from(ip), http.MethodPost, "http://"+f.addr+"/v3/kv/range", strings.NewReader(`{"key":"aw=="}`))
	}
	code, body := get("127.0.0.2")
	require.Equal(t, http.StatusTooManyRequests, code)
	require.Contains(t, body, rpctypes.ErrTooManyRequests.Error())
	code, body = get("127.0.0.3")
	require.Equal(t, http.StatusOK, code, body)
	stop()
	eventually(t, "its requests to be taken again", func() bool {
		code, _ := get("127.0.0.2")
		return code == http.StatusOK
	})
}

// TestARefusedCallOverHTTP: a call that the HTTP server accepted is refused as others are.
func TestARefusedCallOverHTTP(t *testing.T) {
	w := httptest.NewRecorder()
	refuseCall(w, rpctypes.ErrGRPCRequestTooManyRequests)
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "8", w.Header().Get("Grpc-Status"))
	require.Equal(t, rpctypes.ErrorDesc(rpctypes.ErrGRPCRequestTooManyRequests), w.Header().Get("Grpc-Message"))
}
