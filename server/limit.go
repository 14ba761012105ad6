package server

import (
	"errors"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/internal/sys"
)

// Descriptors that are not for clients: for files of the log and the database, and for links to other members.
const (
	// reservedDescriptors is the least number of them, unless the process may have only few.
	reservedDescriptors = 150
	// metricsConnections is how many connections are for metrics and health only, at most.
	metricsConnections = 32
)

// connectionShares returns how many connections clients may have at a time, and how many are for metrics, if the
// process may have this many descriptors. It reserves three quarters of few descriptors, and an eighth of many.
func connectionShares(descriptors int) (clients, metrics int) {
	own := min(max(reservedDescriptors, descriptors/8), descriptors*3/4)
	metrics = max(1, min(metricsConnections, descriptors/16))
	return max(1, descriptors-own-metrics), metrics
}

// shareConnections is connectionShares for this process.
func shareConnections() (clients, metrics int) {
	if n, ok := sys.Descriptors(); ok {
		return connectionShares(n)
	}
	return math.MaxInt32, metricsConnections
}

// clientOf names the client of an address. All connections and requests from one address are of one client; with IPv6
// those from a network of 64 bits, because a host may have all of its addresses. Without an IP address it is "", to
// which no limit of a client applies.
func clientOf(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return ""
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	if ip.Is6() {
		return netip.PrefixFrom(ip, 64).Masked().String()
	}
	return ip.String()
}

// connLimit bounds how many connections of some listeners are open at a time, over all of them. More connections wait
// until one is closed: one for each listener, and behind it those that the system queues. A client with more than its
// own share is no reason for others to wait: what it opens beyond that is closed at once.
type connLimit struct {
	most    int
	each    int          // of one client; 0: no limit
	refused atomic.Int64 // connections that were closed at once
	logger  *slog.Logger

	mu     sync.Mutex
	open   int
	of     map[string]int // open ones by client
	closed chan struct{}  // closed, and replaced by a new one, when a connection is closed
	warned time.Time
}

func newConnLimit(most, each int, logger *slog.Logger) *connLimit {
	return &connLimit{most: most, each: each, logger: logger, of: map[string]int{}, closed: make(chan struct{})}
}

// Open is how many connections are open.
func (c *connLimit) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// errTooMany means that a client has as many connections as it may have.
var errTooMany = errors.New("server: too many connections of a client")

// enter counts a connection of a client; if the limit is reached, it returns a channel to wait for. Error: errTooMany.
func (c *connLimit) enter(client string) (full <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.each > 0 && client != "" && c.of[client] >= c.each {
		c.refused.Add(1)
		c.warn("a client has as many connections as it may have, others are closed", "client", client,
			"connections", c.each)
		return nil, errTooMany
	}
	if c.open < c.most {
		c.open++
		c.of[client]++
		return nil, nil
	}
	c.warn("there are as many connections as there may be, others wait", "connections", c.most)
	return c.closed, nil
}

// warn logs once a minute. c.mu is held.
func (c *connLimit) warn(message string, args ...any) {
	if now := time.Now(); now.Sub(c.warned) > time.Minute {
		c.warned = now
		c.logger.Warn(message, args...)
	}
}

func (c *connLimit) leave(client string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if c.of[client]--; c.of[client] == 0 {
		delete(c.of, client)
	}
	close(c.closed)
	c.closed = make(chan struct{})
}

// listeners returns the listeners with their connections counted.
func (c *connLimit) listeners(all []net.Listener) []net.Listener {
	out := make([]net.Listener, len(all))
	for i, l := range all {
		out[i] = &limitedListener{Listener: l, limit: c, done: make(chan struct{})}
	}
	return out
}

// limitedListener is a net.Listener whose connections count.
type limitedListener struct {
	net.Listener
	limit *connLimit
	done  chan struct{}
	once  sync.Once
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		client := clientOf(conn.RemoteAddr())
		switch err := l.wait(client); {
		case errors.Is(err, errTooMany):
			conn.Close()
		case err != nil:
			return nil, errors.Join(err, conn.Close())
		default:
			return &limitedConn{Conn: conn, leave: sync.OnceFunc(func() { l.limit.leave(client) })}, nil
		}
	}
}

// wait waits until a connection of a client is below the limit, and counts it. Errors: errTooMany, net.ErrClosed.
func (l *limitedListener) wait(client string) error {
	for {
		full, err := l.limit.enter(client)
		if full == nil {
			return err
		}
		select {
		case <-full:
		case <-l.done:
			return net.ErrClosed
		}
	}
}

// Close implements net.Listener.
func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

// limitedConn is a connection that counts until it is closed.
type limitedConn struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.leave()
	return err
}
