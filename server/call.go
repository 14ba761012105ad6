package server

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// call is a gRPC call in progress, and its context.
type call struct {
	context.Context
	cancel context.CancelCauseFunc
	conn   *meteredConn
	stream uint32
	unary  bool

	mu     sync.Mutex
	prefix [prefixBytes]byte // of the message that begins
	have   int               // bytes of it
	begun  bool              // a message is in progress, or was (unary)
	// foreseen: the size of the first message was known before it began.
	foreseen bool
	left     int64         // bytes of it that have not arrived
	size     int64         // the memory that it needs
	known    chan struct{} // is closed when size is known; nil while nothing waits for it
	acquired int64         // memory that the call has
	// since and moved are when its first and its last byte arrived, in sweeps.
	since, moved int64
	ready        chan struct{} // is closed when the call is admitted, if mayRead waits for that
	waits        bool          // for memory, or until the server takes more of a stream
	started      bool          // its handler runs, or ran
	abandoned    bool          // it was abandoned before its handler ran
	ended        bool          // it uses no memory any more, even if more of it arrives
	received     bool          // the request of a unary call is here
}

// prefixBytes is the length of the prefix of a message: a byte that is set if it is compressed, and its length.
const prefixBytes = 5

// callKey is the key of a call in its context.
type callKey struct{}

// Value implements context.Context.
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// Err implements context.Context. gRPC sends this error to a client if it ends with the context what it receives. If
// the server ended it, the client did not cancel it.
func (c *call) Err() error {
	err := c.Context.Err()
	if err != nil && !errors.Is(context.Cause(c.Context), err) {
		return context.DeadlineExceeded
	}
	return err
}

// tapIn begins a call when its headers have arrived. gRPC calls it while it reads the connection.
func (e *endpoints) tapIn(ctx context.Context, info *tap.Info) (context.Context, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return ctx, nil
	}
	addr, ok := p.Addr.(*meteredAddr)
	if !ok || ctx.Err() != nil {
		return ctx, nil
	}
	unary, known := e.unary[info.FullMethodName]
	if !known || unary && addr.conn.whole() {
		return ctx, nil // gRPC refuses it, or reads it without waiting
	}
	return addr.conn.begin(ctx, unary)
}

// begin begins a call of the newest stream.
func (m *meteredConn) begin(ctx context.Context, unary bool) (context.Context, error) {
	if err := m.in.begin(m.from); err != nil {
		return ctx, err
	}
	now := m.in.now.Load()
	c := &call{conn: m, stream: m.last, unary: unary, since: now, moved: now}
	c.Context, c.cancel = context.WithCancelCause(ctx)
	if m.ends {
		c.measured(0)
	} else if prefix := m.ahead(); unary && prefix != nil {
		copy(c.prefix[:], prefix)
		c.measured(c.sizeIn())
		c.foreseen = true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls[c.stream] = c
	return c, nil
}

// end releases the memory of the call. Its context ends with gRPC's.
func (c *call) end() {
	c.conn.mu.Lock()
	known := c.conn.calls[c.stream] == c
	if known {
		delete(c.conn.calls, c.stream)
	}
	last := c.conn.gone && len(c.conn.calls) == 0
	c.conn.mu.Unlock()
	if !known {
		return
	}
	if last {
		c.conn.in.drop(c.conn)
	}
	c.conn.in.end(c.conn.from)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.release(c.acquired)
}

// start begins the handler of a call. It must end it, unless start fails.
func (c *call) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.abandoned {
		return errReceiving
	}
	c.started = true
	return nil
}

// abandon ends a call that has no handler although its context has ended: gRPC never started one, or has been about to
// for long.
func (c *call) abandon(now int64) {
	c.mu.Lock()
	lost := !c.started && c.Context.Err() != nil && time.Duration(now-c.since)*sweepEvery > receiveGrace
	c.abandoned = c.abandoned || lost
	c.mu.Unlock()
	if lost {
		c.end()
	}
}

// release releases memory. c.mu is held.
func (c *call) release(bytes int64) {
	r, from := c.budget()
	r.release(from, bytes)
	c.acquired -= bytes
}

// budget returns the budget of the request, and the connection's share of it.
func (c *call) budget() (*budget, *int64) {
	r := c.conn.in.of(c.size)
	if r == &c.conn.in.large {
		return r, &c.conn.share.large
	}
	return r, &c.conn.share.small
}

// feed gets bytes of the call's messages before gRPC does.
func (c *call) feed(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved = c.conn.in.now.Load()
	for len(p) > 0 {
		if c.left > 0 {
			n := min(c.left, int64(len(p)))
			c.left, p = c.left-n, p[n:]
			if c.left == 0 {
				c.finish()
			}
			continue
		}
		if c.have == 0 && !c.unary {
			c.since = c.moved
		}
		n := copy(c.prefix[c.have:], p)
		c.have, p = c.have+n, p[n:]
		if c.have == prefixBytes {
			c.message()
		}
	}
}

// message begins a message. c.mu is held.
func (c *call) message() {
	c.have, c.left = 0, int64(binary.BigEndian.Uint32(c.prefix[1:]))
	if c.foreseen {
		c.foreseen = false
		return
	}
	if c.unary && c.begun {
		c.cancel(errStreamMessage) // a unary call has one message
		return
	}
	size := c.sizeIn()
	c.measured(size)
	if c.unary {
		return
	}
	switch r, from := c.budget(); {
	case c.left > largeRequest:
		c.cancel(errStreamMessage)
	case size <= freeMessage, c.ended:
	case !r.tryAcquire(from, size):
		c.cancel(rpctypes.ErrGRPCRequestTooManyRequests)
	default:
		c.acquired = size
	}
	if c.left == 0 {
		c.finish()
	}
}

// sizeIn is the size of the message according to its prefix.
func (c *call) sizeIn() int64 {
	if c.prefix[0] != 0 {
		return c.conn.in.largest // it is compressed
	}
	return int64(binary.BigEndian.Uint32(c.prefix[1:]))
}

// measured records the size of a message. c.mu is held.
func (c *call) measured(size int64) {
	c.begun, c.size = true, size
	if c.known != nil {
		close(c.known)
		c.known = nil
	}
}

// closed records that the client sends nothing more.
func (c *call) closed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.begun {
		c.measured(0)
	}
}

// finish ends a message. c.mu is held.
func (c *call) finish() {
	if !c.unary {
		c.release(c.acquired)
		c.begun = false
	}
}

// sizeOf waits until the size of the request is known.
func (c *call) sizeOf() (int64, error) {
	c.mu.Lock()
	if !c.begun {
		if c.known == nil {
			c.known = make(chan struct{})
		}
		known := c.known
		c.mu.Unlock()
		select {
		case <-known:
		case <-c.Done():
			return 0, c.failed(c.Err())
		}
		c.mu.Lock()
	}
	defer c.mu.Unlock()
	return c.size, nil
}

// admit waits until there is memory for the request of a unary call. Only then gRPC reads it.
func (c *call) admit(ctx context.Context, s *Server) error {
	size, err := c.sizeOf()
	if err != nil {
		return err
	}
	if size > c.conn.in.largest {
		c.admitted(0)
		return nil // gRPC refuses it by its size
	}
	if size > largeRequest {
		c.mark(true)
		if err := s.needUser(ctx); err != nil {
			return err
		}
	}
	r, from := c.budget()
	bytes := decoding * size
	if !r.tryAcquire(from, bytes) {
		c.mark(true)
		within, cancel := context.WithTimeout(c, s.timeout)
		defer cancel()
		if err := r.acquire(within, from, bytes); err != nil {
			return c.failed(err)
		}
	}
	c.admitted(bytes)
	return nil
}

// admitted records that the request may be received, and how much memory it has.
func (c *call) admitted(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acquired = bytes
	if c.ended {
		c.release(bytes)
	}
	c.waits, c.since, c.moved = false, c.conn.in.now.Load(), c.conn.in.now.Load()
	if c.ready != nil {
		close(c.ready)
	}
}

// mayRead waits until more of the request may be read, once its size is known.
func (c *call) mayRead() error {
	c.mu.Lock()
	wait := c.unary && c.begun
	c.mu.Unlock()
	if wait {
		select {
		case <-c.ready:
		case <-c.Done():
		}
	}
	return context.Cause(c)
}

// mark records whether the server, and not the client, makes the call wait. The time for what has not arrived begins
// again. If others wait for its memory, that is no excuse. A nil call has no such time.
func (c *call) mark(waits bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.conn.in.now.Load()
	c.waits, c.since, c.moved = waits, now, now
}

// decoded records that the request has arrived, or that it will not.
func (c *call) decoded(err error) error {
	c.mu.Lock()
	c.received = true
	c.release(c.acquired - c.acquired/decoding)
	c.mu.Unlock()
	return c.failed(err) // it may have been ended at the last moment
}

// failed is why receiving failed: the error with which the server ended the call, or err.
func (c *call) failed(err error) error {
	if cause := context.Cause(c.Context); cause != nil && !errors.Is(cause, c.Context.Err()) {
		return cause
	}
	return err
}

// coming reports whether the call has memory for a request that has not arrived.
func (c *call) coming() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acquired > 0 && c.left > 0
}

// sweep ends the call if its request does not arrive. coming is how many requests of its connection are arriving.
func (c *call) sweep(now int64, smallFull, largeFull bool, coming int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	incomplete := c.have > 0 || c.left > 0 || c.unary && !c.begun
	busy := c.acquired > 0 && (smallFull && c.size <= largeRequest || largeFull && c.size > largeRequest)
	if c.received || !incomplete || c.waits && !busy {
		return
	}
	elapsed, idle := time.Duration(now-c.since)*sweepEvery, time.Duration(now-c.moved)*sweepEvery
	h := hasteOf(busy, coming)
	if idle > h.grace || c.left > 0 && elapsed > h.allowed(c.size-c.left) {
		c.cancel(errReceiving)
	}
}

// unaryMethods has for each method whether its calls have one request and one response.
func unaryMethods(g *grpc.Server) map[string]bool {
	out := map[string]bool{}
	for service, info := range g.GetServiceInfo() {
		for _, method := range info.Methods {
			out["/"+service+"/"+method.Name] = !method.IsClientStream && !method.IsServerStream
		}
	}
	return out
}

// registrar registers services whose unary calls are admitted before their requests are read.
type registrar struct {
	grpc.ServiceRegistrar
	s *Server
}

// RegisterService implements grpc.ServiceRegistrar.
func (r registrar) RegisterService(desc *grpc.ServiceDesc, impl any) {
	with := *desc
	with.Methods = slices.Clone(desc.Methods)
	for i := range with.Methods {
		handler := with.Methods[i].Handler
		with.Methods[i].Handler = func(srv any, ctx context.Context, decode func(any) error,
			i grpc.UnaryServerInterceptor) (any, error) {
			c, ok := ctx.Value(callKey{}).(*call)
			if !ok {
				if conn := connIn(ctx); conn != nil { // countJSON counts those of the gateway
					if err := r.s.intake.begin(conn.from); err != nil {
						return nil, err
					}
					defer r.s.intake.end(conn.from)
				}
				return handler(srv, ctx, decode, i)
			}
			if err := c.start(); err != nil {
				return nil, err
			}
			defer c.end()
			if err := c.admit(ctx, r.s); err != nil {
				return nil, err
			}
			return handler(srv, ctx, func(m any) error { return c.decoded(decode(m)) }, i)
		}
	}
	r.ServiceRegistrar.RegisterService(&with, impl)
}
