package server

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Requests that are being received use memory before their user is known. An intake bounds how much, for each
// connection and in all. frames.go reports which messages begin, and how large they are, before gRPC reads them. A
// request for which there is no memory waits. Its client can send no more than streamWindow of it meanwhile.

const (
	// largeRequest is the size from which on a request is large. While auth is on, only users may send one. Large
	// requests have a budget of their own, so that they never delay others.
	largeRequest = 1 << 20
	// intakeBytes is the memory for large requests, and that for all others.
	intakeBytes = 256 << 20
	// freeMessage is the size up to which a message of a stream needs no memory of a budget.
	freeMessage = 4 << 10
	// decoding is how many copies of a request are in memory while it is decoded: as it arrived, in one piece, and as a
	// message.
	decoding = 3
	// maxWaiting bounds the requests that wait for memory, each with at most streamWindow bytes.
	maxWaiting = 1024
	// maxCalls bounds the calls in progress on all connections together. One client has at most half of them, unless
	// Config.MaxRequestsPerClient says otherwise.
	maxCalls = 1 << 16
)

// How long receiving a request may take: receiveGrace without a byte, and in all as long again and as long as the
// received bytes take at receiveRate bytes a second. While others wait for its memory: the same with busyGrace and
// busyRate. The requests of a connection share these times, because they share the link: see haste.
const (
	receiveGrace, receiveRate = 10 * time.Second, 16 << 10
	busyGrace, busyRate       = 2 * time.Second, 128 << 10
	sweepEvery                = 500 * time.Millisecond
)

var (
	// errReceiving ends a call whose request does not arrive. Nothing happened, a retry is safe.
	errReceiving = status.Error(codes.DeadlineExceeded, "etcdserver: the request was not received in time")
	// errStreamMessage ends a stream whose client sends a message larger than streams accept.
	errStreamMessage = status.Error(codes.ResourceExhausted, "etcdserver: message of a stream is too large")
)

// intake is the memory for requests that are being received.
type intake struct {
	small, large budget
	// largest is the largest message that gRPC accepts.
	largest int64
	calls   atomic.Int64
	// each bounds the calls in progress of one client.
	each int64
	// refused counts calls beyond one of these limits.
	refused atomic.Int64
	// now counts sweeps.
	now atomic.Int64
	// received are the bytes of payloads of frames from clients, sent those of frames to them, with their headers.
	received, sent atomic.Int64

	mu    sync.Mutex
	conns map[*meteredConn]struct{}
	// clients are those with connections, by clientOf.
	clients map[string]*client
	bodies  map[*jsonBody]struct{}
}

// client is where connections come from.
type client struct {
	name  string
	conns int          // in intake.conns
	calls atomic.Int64 // in progress
}

// haste is how soon a request must arrive.
type haste struct {
	grace time.Duration
	rate  int64
}

// hasteOf is how soon each of this many requests of a connection must arrive. busy: others wait for the memory that
// they have.
func hasteOf(busy bool, requests int) haste {
	if !busy {
		return haste{receiveGrace, receiveRate}
	}
	n := max(1, requests)
	return haste{min(receiveGrace, time.Duration(n)*busyGrace), max(receiveRate, busyRate/int64(n))}
}

// allowed is how long receiving this many bytes may take.
func (h haste) allowed(bytes int64) time.Duration {
	return h.grace + time.Duration(bytes)*time.Second/time.Duration(h.rate)
}

// newIntake returns an intake for messages of at most largest bytes, and at most each calls in progress of one client.
func newIntake(largest, each int) *intake {
	bytes := max(intakeBytes, 2*decoding*int64(largest))
	return &intake{
		small:   budget{most: intakeBytes, each: intakeBytes / 2},
		large:   budget{most: bytes, each: bytes / 2},
		largest: int64(largest), each: int64(each), conns: map[*meteredConn]struct{}{}, clients: map[string]*client{},
		bodies: map[*jsonBody]struct{}{},
	}
}

// add adds a connection from an address.
func (in *intake) add(m *meteredConn, from net.Addr) {
	name := clientOf(from)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.conns[m] = struct{}{}
	if name == "" {
		return
	}
	if m.from = in.clients[name]; m.from == nil {
		m.from = &client{name: name}
		in.clients[name] = m.from
	}
	m.from.conns++
}

func (in *intake) drop(m *meteredConn) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if _, known := in.conns[m]; !known {
		return
	}
	delete(in.conns, m)
	if m.from == nil {
		return
	}
	if m.from.conns--; m.from.conns == 0 {
		delete(in.clients, m.from.name)
	}
}

// begin counts a call of a client that begins; nil: it has no address of its own. The caller calls end when it ends.
func (in *intake) begin(of *client) error {
	calls, mine := in.calls.Add(1), int64(0)
	if of != nil {
		mine = of.calls.Add(1)
	}
	if calls <= maxCalls && mine <= in.each {
		return nil
	}
	in.refused.Add(1)
	in.end(of)
	return rpctypes.ErrGRPCRequestTooManyRequests
}

func (in *intake) end(of *client) {
	in.calls.Add(-1)
	if of != nil {
		of.calls.Add(-1)
	}
}

// clientNamed is the name of a call's client; "": it has none.
func clientNamed(ctx context.Context) string {
	if c := clientIn(ctx); c != nil {
		return c.name
	}
	return ""
}

// clientIn is the client of a call that came over a connection of its own; else nil.
func clientIn(ctx context.Context) *client {
	if conn := connIn(ctx); conn != nil {
		return conn.from
	}
	return nil
}

// connIn is the connection of a call's client; nil: the gateway makes the call.
func connIn(ctx context.Context) *meteredConn {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c.conn
	}
	if p, ok := peer.FromContext(ctx); ok {
		if addr, ok := p.Addr.(*meteredAddr); ok {
			return addr.conn
		}
	}
	return nil
}

// of is the budget for requests of a size.
func (in *intake) of(size int64) *budget {
	if size > largeRequest {
		return &in.large
	}
	return &in.small
}

// run ends calls whose requests do not arrive, until stopping is closed.
func (in *intake) run(stopping <-chan struct{}) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			in.sweep()
		case <-stopping:
			return
		}
	}
}

func (in *intake) sweep() {
	now := in.now.Add(1)
	small, large := in.small.isContended(), in.large.isContended()
	in.mu.Lock()
	conns := make([]*meteredConn, 0, len(in.conns))
	for c := range in.conns {
		conns = append(conns, c)
	}
	bodies := slices.Collect(maps.Keys(in.bodies)) // any order
	in.mu.Unlock()
	for _, conn := range conns {
		calls, coming := conn.all(), 0
		for _, c := range calls {
			if c.coming() {
				coming++
			}
		}
		for _, c := range calls {
			c.sweep(now, small, large, coming)
			c.abandon(now)
		}
	}
	for _, b := range bodies {
		b.sweep(small, large)
	}
}

// share is how much of each budget one connection uses.
type share struct{ small, large int64 }

// budget is memory that requests share.
type budget struct {
	most, each int64 // in all, and for each connection

	mu      sync.Mutex
	used    int64
	waiting []*claim // in the order in which they came
}

// claim waits for memory.
type claim struct {
	from    *int64 // what the connection uses
	bytes   int64
	granted chan struct{}
}

// fits reports whether there is enough memory. r.mu is held.
func (r *budget) fits(from *int64, bytes int64) bool {
	return r.used+bytes <= r.most && *from+bytes <= r.each
}

// tryAcquire acquires memory for a request, if there is enough and no request waits. from is what the connection uses.
func (r *budget) tryAcquire(from *int64, bytes int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.fits(from, bytes) || r.contended() {
		return false
	}
	r.used, *from = r.used+bytes, *from+bytes
	return true
}

// acquire waits until it has acquired memory for a request. bytes ≤ each. If it fails, nothing is acquired.
func (r *budget) acquire(ctx context.Context, from *int64, bytes int64) error {
	r.mu.Lock()
	if len(r.waiting) >= maxWaiting {
		r.mu.Unlock()
		return rpctypes.ErrGRPCRequestTooManyRequests
	}
	c := &claim{from, bytes, make(chan struct{})}
	r.waiting = append(r.waiting, c)
	r.grant()
	r.mu.Unlock()
	select {
	case <-c.granted:
		return nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.waiting, c); i >= 0 {
		r.waiting = slices.Delete(r.waiting, i, i+1)
		r.grant()
		return rpctypes.ErrGRPCRequestTooManyRequests
	}
	return nil // granted at the last moment
}

// release releases memory.
func (r *budget) release(from *int64, bytes int64) {
	if bytes == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used, *from = r.used-bytes, *from-bytes
	if len(r.waiting) > 0 {
		r.grant()
	}
}

// grant gives memory to those that wait, in order; one whose connection has all that it may have lets others pass.
// r.mu is held.
func (r *budget) grant() {
	r.waiting = slices.DeleteFunc(r.waiting, func(c *claim) bool {
		if !r.fits(c.from, c.bytes) {
			return false
		}
		r.used, *c.from = r.used+c.bytes, *c.from+c.bytes
		close(c.granted)
		return true
	})
}

// isContended reports whether requests wait because others have the memory.
func (r *budget) isContended() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.contended()
}

// contended is isContended with r.mu held. A request that waits because its own connection has all that it may have is
// no one else's concern.
func (r *budget) contended() bool {
	return slices.ContainsFunc(r.waiting, func(c *claim) bool { return *c.from+c.bytes <= r.each })
}
