package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
)

// sniffTimeout is how long a new connection may take to finish its TLS handshake and
// show the beginning of its first request.
const sniffTimeout = 10 * time.Second

// http2Preface begins every HTTP/2 connection.
const http2Preface = "PRI * HTTP/2.0"

// sniffer accepts client connections and passes each to the gRPC or the HTTP server by its first bytes: HTTP/2 is
// gRPC. If a TLS client also offered HTTP/1.1, its HTTP/2 may be gRPC or not. Then the HTTP server gets the connection
// and forwards each gRPC call, which is slower. A connection that is silent, or sends half a preface, is closed after
// [sniffTimeout] and delays no other.
type sniffer struct {
	tls        *tls.Config // nil: all are plain
	plain      bool        // with TLS: connections that do not begin with its handshake are plain
	intake     *intake
	refusals   *refusals
	grpc, http *connQueue

	mu sync.Mutex
	// open are all connections that were accepted and not closed. stop closes them: a server may wait for the preface of
	// one for a while.
	open    map[net.Conn]struct{}
	stopped bool
	busy    sync.WaitGroup
}

func newSniffer(w way, addr net.Addr, in *intake, r *refusals) *sniffer {
	s := &sniffer{intake: in, refusals: r, grpc: newConnQueue(addr), http: newConnQueue(addr),
		open: map[net.Conn]struct{}{}}
	if w.tls != nil {
		s.tls, s.plain = preferHTTP2(w.tls), w.plain
	}
	return s
}

// way is how clients connect to a listener: plain if there is no TLS.
type way struct {
	tls   *tls.Config
	plain bool
}

// clientListeners returns the listeners for clients, each once, and how clients connect to them.
func (c *Config) clientListeners() (all []net.Listener, ways []way) {
	for _, l := range c.ListenClient {
		all, ways = append(all, l), append(ways, way{c.TLS, slices.Contains(c.ListenPlain, l)})
	}
	for _, l := range c.ListenPlain {
		if !slices.Contains(c.ListenClient, l) {
			all, ways = append(all, l), append(ways, way{nil, true})
		}
	}
	return all, ways
}

// preferHTTP2 gives HTTP/2 to clients that offer it, and notes which of them also offer
// HTTP/1.1: those may be browsers, or clients of gRPC.
func preferHTTP2(config *tls.Config) *tls.Config {
	prefer := func(c *tls.Config) *tls.Config {
		c = c.Clone()
		c.NextProtos = []string{"h2", "http/1.1"}
		return c
	}
	outer := prefer(config)
	outer.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if conn, ok := hello.Conn.(*helloConn); ok {
			conn.both = slices.Contains(hello.SupportedProtos, "h2") && slices.Contains(hello.SupportedProtos, "http/1.1")
		}
		if config.GetConfigForClient == nil {
			return nil, nil
		}
		c, err := config.GetConfigForClient(hello)
		if c == nil || err != nil {
			return nil, err
		}
		return prefer(c), nil
	}
	return outer
}

// helloConn is a connection and what its client offered in the TLS handshake.
type helloConn struct {
	net.Conn
	both bool // HTTP/2 and HTTP/1.1
}

// serve accepts connections from l until l is closed. Running out of file descriptors
// is no reason to stop: it tries again after a pause. Several listeners may be served.
func (s *sniffer) serve(l net.Listener) {
	const shortest, longest = 5 * time.Millisecond, time.Second
	pause := shortest
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			select {
			case <-time.After(pause):
				pause = min(2*pause, longest)
				continue
			case <-s.grpc.done:
				return
			}
		}
		pause = shortest
		if !s.admit(conn) {
			conn.Close()
			continue
		}
		go func() {
			defer s.busy.Done()
			s.dispatch(conn)
		}()
	}
}

func (s *sniffer) admit(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.open[conn] = struct{}{}
	s.busy.Add(1)
	return true
}

func (s *sniffer) forget(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, conn)
}

// dispatch detects the protocol of a connection and passes it to that server.
func (s *sniffer) dispatch(raw net.Conn) {
	conn, isGRPC, err := s.greet(raw)
	queue := s.http
	if isGRPC {
		queue, conn = s.grpc, s.intake.meter(conn)
	}
	if err != nil {
		raw.Close()
		s.forget(raw)
	} else if !queue.put(conn) {
		conn.Close()
	}
}

func (s *sniffer) greet(raw net.Conn) (conn net.Conn, isGRPC bool, err error) {
	if err := raw.SetDeadline(time.Now().Add(sniffTimeout)); err != nil {
		return nil, false, err
	}
	out := &sniffedConn{aheadConn: aheadConn{Conn: raw}, closed: func() { s.forget(raw) }}
	isTLS := s.tls != nil
	if isTLS && s.plain {
		if isTLS, err = out.beginsTLS(); err != nil {
			return nil, false, err
		}
	}
	hello := &helloConn{Conn: &aheadConn{Conn: raw, ahead: out.ahead}}
	if isTLS {
		secure := tls.Server(hello, s.tls)
		if err := secure.HandshakeContext(context.Background()); err != nil {
			s.refusals.handshakes.add(raw.RemoteAddr().String(), err)
			return nil, false, err
		}
		out.aheadConn, out.tls = aheadConn{Conn: secure}, secure
	}
	isHTTP2, err := out.sniff()
	if err != nil {
		return nil, false, err
	}
	return out, isHTTP2 && !hello.both, raw.SetDeadline(time.Time{})
}

// stop closes all connections and ends both queues.
func (s *sniffer) stop() {
	s.mu.Lock()
	s.stopped = true
	for conn := range s.open {
		conn.Close()
	}
	s.mu.Unlock()
	s.busy.Wait()
	s.grpc.Close()
	s.http.Close()
}

// aheadConn is a connection whose first bytes were read ahead.
type aheadConn struct {
	net.Conn
	ahead []byte
}

// Read implements net.Conn.
func (c *aheadConn) Read(b []byte) (int, error) {
	if len(c.ahead) > 0 {
		n := copy(b, c.ahead)
		c.ahead = c.ahead[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

// handshakeRecord is the first byte of a connection of TLS, and of none of HTTP.
const handshakeRecord = 0x16

// beginsTLS reads the first byte ahead.
func (c *aheadConn) beginsTLS() (bool, error) {
	first := make([]byte, 1)
	if _, err := io.ReadFull(c.Conn, first); err != nil {
		return false, err
	}
	c.ahead = first
	return first[0] == handshakeRecord, nil
}

// sniffedConn is a connection whose protocol is known.
type sniffedConn struct {
	aheadConn
	tls    *tls.Conn // nil: plain
	closed func()    // is called by Close
}

// sniff reads until the first bytes cannot be, or are, the HTTP/2 preface.
func (c *sniffedConn) sniff() (isHTTP2 bool, err error) {
	buf := make([]byte, 0, len(http2Preface))
	for len(buf) < cap(buf) {
		n, err := c.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if string(buf) != http2Preface[:len(buf)] {
			c.ahead = buf
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	c.ahead = buf
	return true, nil
}

// Close implements net.Conn.
func (c *sniffedConn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

// connQueue is a net.Listener whose connections are put into it.
type connQueue struct {
	addr  net.Addr
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newConnQueue(addr net.Addr) *connQueue {
	return &connQueue{addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
}

func (q *connQueue) put(conn net.Conn) bool {
	select {
	case q.conns <- conn:
		return true
	case <-q.done:
		return false
	}
}

// Accept implements net.Listener.
func (q *connQueue) Accept() (net.Conn, error) {
	select {
	case conn := <-q.conns:
		return conn, nil
	case <-q.done:
		return nil, io.EOF
	}
}

// Close implements net.Listener.
func (q *connQueue) Close() error {
	q.once.Do(func() { close(q.done) })
	return nil
}

// Addr implements net.Listener.
func (q *connQueue) Addr() net.Addr { return q.addr }

// greeted are the transport credentials of connections that went through a sniffer. The handshake is over; they only
// return its outcome.
type greeted struct{}

// ServerHandshake implements credentials.TransportCredentials.
func (greeted) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	metered, ok := conn.(*meteredConn)
	if !ok {
		return conn, nil, nil // the gateway's
	}
	sniffed, ok := metered.Conn.(*sniffedConn)
	if !ok || sniffed.tls == nil {
		return conn, nil, nil
	}
	return conn, credentials.TLSInfo{
		State:          sniffed.tls.ConnectionState(),
		CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity},
	}, nil
}

// ClientHandshake implements credentials.TransportCredentials; servers never call it.
func (greeted) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("server: not a client's credentials")
}

// Info implements credentials.TransportCredentials.
func (greeted) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "greeted"}
}

// Clone implements credentials.TransportCredentials.
func (g greeted) Clone() credentials.TransportCredentials { return g }

// OverrideServerName implements credentials.TransportCredentials.
func (greeted) OverrideServerName(string) error { return nil }
