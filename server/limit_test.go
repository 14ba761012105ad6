package server

import (
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
	limit := newConnLimit(3, slog.New(slog.DiscardHandler))
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
	limit := newConnLimit(1, slog.New(slog.DiscardHandler))
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
