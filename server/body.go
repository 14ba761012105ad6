package server

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/status"
)

// bodyStep is how many bytes of a body are read at a time, and at most before memory for more is acquired.
const bodyStep = 64 << 10

// jsonBody is the body of a request to the gateway. It acquires memory of the intake as it is read.
type jsonBody struct {
	io.ReadCloser
	s     *Server
	r     *http.Request
	limit *http.ResponseController
	// stream: it has any number of messages, each of which must come in time once it has begun. Another body is
	// one message.
	stream bool
	text   jsonText
	began  time.Time // of the message in progress
	read   int64     // bytes of it
	share
	user bool // the request has a user, or needs none

	mu      sync.Mutex
	hurried hurried
}

// hurried is the state of a body that a sweep reads, guarded by its mu.
type hurried struct {
	reading      bool // a message is in progress, and the client is to send more
	small, large bool // the message has such memory
	began        time.Time
	read         int64
}

// meterBody makes the body of a request acquire memory. The caller calls done when the request is served.
func (s *Server) meterBody(w http.ResponseWriter, r *http.Request) (done func()) {
	if r.Body == nil || r.Body == http.NoBody {
		return func() {}
	}
	path := currentPath(r.URL.Path)
	b := &jsonBody{
		ReadCloser: r.Body, s: s, r: r, limit: http.NewResponseController(w), began: time.Now(),
		stream: path == "/v3/watch" || path == "/v3/lease/keepalive",
	}
	r.Body = b
	s.intake.mu.Lock()
	s.intake.bodies[b] = struct{}{}
	s.intake.mu.Unlock()
	return func() {
		b.setReading(false)
		s.intake.mu.Lock()
		delete(s.intake.bodies, b)
		s.intake.mu.Unlock()
		b.done()
	}
}

// setReading records whether the client is to send more. Only then a sweep may end the message.
func (b *jsonBody) setReading(reading bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hurried = hurried{reading, b.small > 0, b.large > 0, b.began, b.read}
}

// sweep ends a message that does not arrive while others wait for its memory. Its Read fails.
func (b *jsonBody) sweep(smallFull, largeFull bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := &b.hurried
	busy := smallFull && h.small || largeFull && h.large
	if h.reading && busy && time.Since(h.began) > hasteOf(true, 1).allowed(h.read) {
		_ = b.limit.SetReadDeadline(time.Unix(1, 0))
	}
}

func (b *jsonBody) done() {
	b.s.intake.small.release(&b.small, b.small)
	b.s.intake.large.release(&b.large, b.large)
}

// Read implements io.Reader.
func (b *jsonBody) Read(p []byte) (int, error) {
	p = p[:min(len(p), bodyStep)]
	if b.stream {
		next := int64(freeMessage)
		if b.read >= next {
			next = largeRequest
		}
		if b.read >= next {
			return 0, errStreamMessage
		}
		p = p[:min(len(p), int(next-b.read))]
	}
	asked := time.Now()
	if err := b.reserve(int64(len(p))); err != nil {
		return 0, err
	}
	b.began = b.began.Add(time.Since(asked)) // time in which the server makes it wait does not count
	timed := !b.stream || b.read > 0
	if timed {
		_ = b.limit.SetReadDeadline(b.began.Add(hasteOf(false, 1).allowed(b.read)))
		b.setReading(true)
	}
	n, err := b.ReadCloser.Read(p)
	b.setReading(false)
	ended := b.count(p[:n])
	if timed && (ended || err != nil) {
		_ = b.limit.SetReadDeadline(time.Time{})
	}
	return n, err
}

// count counts bytes of the message in progress, and reports whether one ended.
func (b *jsonBody) count(p []byte) (ended bool) {
	if !b.stream {
		b.read += int64(len(p))
		return false
	}
	before := b.read
	for _, c := range p {
		if b.text.next(c) {
			b.read, ended = 0, true
		} else if b.read > 0 || c > ' ' {
			b.read++
		}
	}
	if ended {
		b.done()
	}
	if ended || before == 0 {
		b.began = time.Now()
	}
	return ended
}

// jsonText tracks the objects of a text of JSON.
type jsonText struct {
	depth           int
	quoted, escaped bool
}

// next scans a byte and reports whether it ends an object that is in no other.
func (j *jsonText) next(c byte) bool {
	switch {
	case j.escaped:
		j.escaped = false
	case j.quoted:
		j.quoted, j.escaped = c != '"', c == '\\'
	case c == '"':
		j.quoted = true
	case c == '{':
		j.depth++
	case c == '}':
		j.depth--
		return j.depth == 0
	}
	return false
}

// reserve acquires memory for n bytes more. What is beyond largeRequest comes from the memory for large requests.
func (b *jsonBody) reserve(n int64) error {
	if b.stream && b.read+n <= freeMessage {
		return nil
	}
	step := decoding*(b.read+n) - b.small - b.large
	if step <= 0 {
		return nil
	}
	r, from := &b.s.intake.small, &b.small
	if b.read+n > largeRequest {
		r, from = &b.s.intake.large, &b.large
		if err := b.needUser(); err != nil {
			return err
		}
	}
	if r.tryAcquire(from, step) {
		return nil
	}
	ctx, cancel := context.WithTimeout(b.r.Context(), b.s.timeout)
	defer cancel()
	return r.acquire(ctx, from, step)
}

// needUser refuses a large request without a user, if users are required.
func (b *jsonBody) needUser() error {
	if !b.user {
		if err := b.s.needUser(callContext(b.r)); err != nil {
			return err
		}
		b.user = true
	}
	return nil
}

// callBody is the body of a gRPC call that came over TLS (sniffer). gRPC reads such a body as fast as it comes, so
// reading waits until the call is admitted.
type callBody struct {
	io.ReadCloser
	call *call
}

// Read implements io.Reader.
func (b *callBody) Read(p []byte) (int, error) {
	if err := b.call.mayRead(); err != nil {
		return 0, err
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), bodyStep)])
	b.call.feed(p[:n])
	if err != nil {
		b.call.closed()
	}
	return n, err
}

// connOf adds a connection for the calls of a request to the HTTP server. The caller calls its closed.
func (in *intake) connOf(r *http.Request) *meteredConn {
	conn := &meteredConn{in: in, calls: map[uint32]*call{}}
	in.add(conn, remoteOf(r))
	return conn
}

// refuseCall answers a gRPC call with an error.
func refuseCall(w http.ResponseWriter, err error) {
	s := status.Convert(err)
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Grpc-Status", strconv.Itoa(int(s.Code())))
	w.Header().Set("Grpc-Message", s.Message()) // of printable ASCII
}

// serveCall serves a gRPC call that the HTTP server accepted.
func (e *endpoints) serveCall(w http.ResponseWriter, r *http.Request) {
	unary, known := e.unary[r.URL.Path]
	if !known {
		e.grpc.ServeHTTP(w, r)
		return
	}
	conn := e.intake.connOf(r)
	defer conn.closed()
	ctx, err := conn.begin(r.Context(), unary)
	if err != nil {
		refuseCall(w, err)
		return
	}
	c := ctx.(*call)
	defer c.end() // if gRPC has refused it
	if unary {
		c.ready = make(chan struct{})
	}
	r = r.WithContext(c)
	r.Body = &callBody{r.Body, c}
	e.grpc.ServeHTTP(w, r)
}

// isCall reports whether a request is a gRPC call.
func isCall(r *http.Request) bool {
	return r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
}
