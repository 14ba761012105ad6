package server

import (
	"errors"
	"log/slog"
	"math"
	"net"
	"sync"
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

// connLimit bounds how many connections of some listeners are open at a time, over all of them. More connections wait
// until one is closed: one for each listener, and behind it those that the system queues.
type connLimit struct {
	most   int
	logger *slog.Logger

	mu     sync.Mutex
	open   int
	closed chan struct{} // closed, and replaced by a new one, when a connection is closed
	warned time.Time
}

func newConnLimit(most int, logger *slog.Logger) *connLimit {
	return &connLimit{most: most, logger: logger, closed: make(chan struct{})}
}

// Open is how many connections are open.
func (c *connLimit) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// enter counts a connection; if the limit is reached, it returns a channel to wait for.
func (c *connLimit) enter() (full <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open < c.most {
		c.open++
		return nil
	}
	if now := time.Now(); now.Sub(c.warned) > time.Minute {
		c.warned = now
		c.logger.Warn("there are as many connections as there may be, others wait", "connections", c.most)
	}
	return c.closed
}

func (c *connLimit) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
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
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	for full := l.limit.enter(); full != nil; full = l.limit.enter() {
		select {
		case <-full:
		case <-l.done:
			return nil, errors.Join(net.ErrClosed, conn.Close())
		}
	}
	return &limitedConn{Conn: conn, leave: sync.OnceFunc(l.limit.leave)}, nil
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
