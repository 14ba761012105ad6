package transport

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"time"
)

// Request asks a peer and returns its answer. The peer's handler sees ctx's deadline and its end. Errors: *RemoteError
// is the handler's own; *LinkError has whether the request may have reached the peer; with ErrBusy and *SizeError
// (wrapped in it) it did not. The request is copied; the answer belongs to the caller.
func (t *Transport) Request(ctx context.Context, to uint64, request []byte) ([]byte, error) {
	p := t.peer(to)
	if p == nil {
		return nil, &LinkError{Peer: to, Op: "request", Err: ErrUnknownPeer}
	}
	if len(request)+8 > t.opt.MaxFrameBytes {
		return nil, &LinkError{Peer: to, Op: "request", Err: &SizeError{"request", len(request), t.opt.MaxFrameBytes - 8}}
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t.timing.request)
		defer cancel()
	}
	if !p.calls.enter(len(request)) {
		return nil, &LinkError{Peer: to, Op: "request", Err: ErrBusy}
	}
	defer p.calls.leave(len(request))
	c, err := p.calls.connection(ctx)
	if err != nil {
		return nil, err
	}
	return c.ask(ctx, request)
}

// caller sends requests to one peer. It has a connection for each of the peer's network cards,
// which take turns, so that large answers use all cards. A connection is made when it is needed,
// and again after it broke.
type caller struct {
	peer *peer

	mu    sync.Mutex
	count int // requests in progress; ≤ Options.MaxRequests
	bytes int // of them; ≤ Options.QueueBytes, or one request. The same goes for what waits to be written
	turn  int // of the next request
	conns [maxRequestConns]requestSlot
}

// requestSlot is a place for a connection for requests, one of maxRequestConns at most.
type requestSlot struct {
	conn    *callConn
	attempt *attempt // in progress, if any
}

// maxRequestConns bounds the connections for requests to a peer, whatever addresses it has.
const maxRequestConns = 16

// attempt is a connection being made. err is valid when done is closed.
type attempt struct {
	done chan struct{}
	conn *callConn
	err  error
}

func (c *caller) enter(n int) bool {
	o := &c.peer.t.opt
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count >= o.MaxRequests || c.bytes > 0 && c.bytes+n > o.QueueBytes {
		return false
	}
	if waits := c.unwritten(); waits > 0 && waits+n > o.QueueBytes {
		return false
	}
	c.count++
	c.bytes += n
	return true
}

// unwritten returns how many bytes wait to be written. Cancelled requests are among them, until the peer takes them or
// the connection ends: what comes into its queue after that is written by no one, and goes with it. It needs mu.
func (c *caller) unwritten() (n int) {
	for i := range c.conns {
		if conn := c.conns[i].conn; conn != nil && conn.ctx.Err() == nil {
			n += conn.q.bytes()
		}
	}
	return n
}

func (c *caller) leave(n int) {
	c.mu.Lock()
	c.count--
	c.bytes -= n
	c.mu.Unlock()
}

// connection returns the connection whose turn it is, after making it if there is none.
func (c *caller) connection(ctx context.Context) (*callConn, error) {
	n := min(max(1, len(*c.peer.addrs.Load())), maxRequestConns)
	c.mu.Lock()
	number := c.turn % n
	c.turn = number + 1
	l := &c.conns[number]
	if l.conn != nil && l.conn.ctx.Err() == nil {
		defer c.mu.Unlock()
		return l.conn, nil
	}
	a := l.attempt
	if a == nil {
		a = &attempt{done: make(chan struct{})}
		if !c.peer.t.spawn(func() { c.run(l, uint32(number), a) }) {
			c.mu.Unlock()
			return nil, &LinkError{Peer: c.peer.id, Op: "request", Err: ErrClosed}
		}
		l.attempt = a
	}
	c.mu.Unlock()
	select {
	case <-a.done:
		return a.conn, a.err
	case <-ctx.Done():
		return nil, &LinkError{Peer: c.peer.id, Op: "dial", Err: ctx.Err()}
	}
}

// run makes a connection and serves it until it ends.
func (c *caller) run(l *requestSlot, number uint32, a *attempt) {
	conn, err := c.peer.dialAny(c.peer.ctx, forRequests, number)
	if err == nil {
		a.conn = newCallConn(c.peer, conn)
	}
	a.err = err
	c.mu.Lock()
	l.conn, l.attempt = a.conn, nil
	c.mu.Unlock()
	close(a.done)
	if err == nil {
		a.conn.run()
	}
}

// callConn is a connection for requests. Answers find their requests by number.
type callConn struct {
	peer *peer
	conn net.Conn
	q    *queue
	ctx  context.Context
	end  context.CancelCauseFunc

	mu    sync.Mutex
	next  uint32
	calls map[uint32]chan<- answer // nil when the connection has ended
}

type answer struct {
	body []byte
	err  error
}

func newCallConn(p *peer, conn net.Conn) *callConn {
	c := &callConn{peer: p, conn: conn, calls: map[uint32]chan<- answer{}}
	c.q = newQueue(math.MaxInt, p.t.opt.TLS != nil) // caller bounds what comes here
	c.q.format = p.t.frameFormat
	c.ctx, c.end = context.WithCancelCause(p.ctx)
	return c
}

// run serves the connection until it ends, and fails what was not answered.
func (c *callConn) run() {
	unhook := context.AfterFunc(c.ctx, func() { hangUp(c.conn) })
	defer unhook()
	read := make(chan struct{})
	go func() {
		defer close(read)
		c.end(c.readAnswers())
	}()
	t := c.peer.t
	p := pump{q: c.q, conn: c.conn, timing: &t.timing, counted: c.peer.counted, fault: c.peer.cut, tls: t.opt.TLS != nil}
	c.end(p.run(c.ctx))
	hangUp(c.conn)
	<-read
	c.q.discard()
	err := &LinkError{Peer: c.peer.id, Op: "request", Sent: true, Err: context.Cause(c.ctx)}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ch := range c.calls {
		ch <- answer{err: err}
	}
	c.calls = nil
}

func (c *callConn) readAnswers() error {
	t := c.peer.t
	r := t.newReader(c.ctx, c.conn, t.opt.MaxFrameBytes, c.peer.counted)
	for {
		h, b, err := r.frame()
		switch {
		case err == io.EOF:
			return fmt.Errorf("closed by the peer: %w", err)
		case err != nil:
			return err
		case h.kind == kindAnswer:
			c.deliver(h.stream, answer{body: b})
		case h.kind == kindFailure:
			c.deliver(h.stream, answer{err: &RemoteError{c.peer.id, string(b)}})
		default:
			return &FrameError{fmt.Sprintf("kind %d where answers are expected", h.kind)}
		}
	}
}

// deliver hands an answer to its caller, if that still waits.
func (c *callConn) deliver(id uint32, a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch := c.calls[id]; ch != nil {
		delete(c.calls, id)
		ch <- a // has space for one
	}
}

// begin gives a request its number; false if the connection has ended.
func (c *callConn) begin(ch chan<- answer) (uint32, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		return 0, false
	}
	c.next++
	for c.calls[c.next] != nil {
		c.next++
	}
	c.calls[c.next] = ch
	return c.next, true
}

func (c *callConn) ask(ctx context.Context, request []byte) ([]byte, error) {
	until, _ := ctx.Deadline()
	ch := make(chan answer, 1)
	id, ok := c.begin(ch)
	if !ok {
		return nil, &LinkError{Peer: c.peer.id, Op: "request", Err: context.Cause(c.ctx)}
	}
	body := make([]byte, 8, 8+len(request))
	binary.LittleEndian.PutUint64(body, uint64(max(time.Until(until), 0)))
	c.q.put(kindRequest, id, append(body, request...))
	select {
	case a := <-ch:
		return a.body, a.err
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.calls, id)
		c.mu.Unlock()
		c.q.put(kindCancel, id)
		return nil, &LinkError{Peer: c.peer.id, Op: "request", Sent: true, Err: ctx.Err()}
	}
}
