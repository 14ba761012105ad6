package metrics

import (
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Counts are the counters of the services. What happens once per request is a plain atomic counter here; it becomes a
// Prometheus metric when metrics are asked for. The rest is read from the log and the store at that moment.
type Counts struct {
	Pending, Failed    atomic.Int64
	LeaderChanges      atomic.Int64
	SlowReads          atomic.Int64
	HealthOK, HealthNo atomic.Int64
	Expired, Renewed   atomic.Int64 // leases
	Accepted, Tokens   atomic.Int64 // puts answered before they were applied; calls with tokens
	WatchStreams       atomic.Int64
	Watches            atomic.Int64
	Events             atomic.Int64

	observed *observed
	// methods by full name: fixed once the services are registered.
	methods map[string]*Method
	// clients counts requests by kind and client version.
	clients sync.Map // clientKind → *atomic.Int64
	// last is the entry of clients used last: mostly all clients are of one version.
	last [2]atomic.Pointer[clientCount]
}

// Method counts the calls of one method by outcome.
type Method struct {
	service, method, kind string

	observed     *observed
	times, reads *durations          // of calls, and of transactions that only read; nil: etcd does not measure the method
	handling     prometheus.Observer // nil: not extensive

	started        atomic.Int64
	handled        [codes.Unauthenticated + 1]atomic.Int64
	received, sent atomic.Int64
}

type clientKind struct {
	stream  bool
	version string
}

type clientCount struct {
	version string
	n       *atomic.Int64
}

// New makes the counts of a server. Extensive ones measure how long each call of each method takes.
func New(extensive bool) *Counts {
	return &Counts{methods: map[string]*Method{}, observed: newObserved(extensive)}
}

// Register makes a counter for every method of a server. It comes before serving.
func (m *Counts) Register(s *grpc.Server) {
	for service, info := range s.GetServiceInfo() {
		for _, method := range info.Methods {
			kind := "unary"
			switch {
			case method.IsClientStream && method.IsServerStream:
				kind = "bidi_stream"
			case method.IsClientStream:
				kind = "client_stream"
			case method.IsServerStream:
				kind = "server_stream"
			}
			m.methods["/"+service+"/"+method.Name] = m.observed.method(service, method.Name, kind)
		}
	}
}

// Method returns the counter of a method by its full name. It is nil if the server has no such method.
func (m *Counts) Method(name string) *Method { return m.methods[name] }

// Start counts a call that begins.
func (c *Method) Start() { c.started.Add(1) }

// Receive counts a message of a stream that was received, or that failed although the client has not left.
func (c *Method) Receive(err error, left bool) { c.passed(&c.received, "receive", err, left) }

// Send counts a message of a stream that was sent, or that failed although the client has not left.
func (c *Method) Send(err error, left bool) { c.passed(&c.sent, "send", err, left) }

func (c *Method) passed(n *atomic.Int64, direction string, err error, left bool) {
	switch {
	case err == nil:
		n.Add(1)
	case !left && !errors.Is(err, io.EOF):
		c.fails(direction)
	}
}

// End counts a call that has ended, with the status of err. It took that long. req is nil for a stream.
func (c *Method) End(req any, err error, took time.Duration) {
	c.took(req, err, took)
	code := status.Code(err)
	if int(code) >= len(c.handled) {
		code = codes.Unknown
	}
	c.handled[code].Add(1)
}

// Client counts a request of a client of some version.
func (m *Counts) Client(stream bool, version string) {
	slot := &m.last[0]
	if stream {
		slot = &m.last[1]
	}
	if last := slot.Load(); last != nil && last.version == version {
		last.n.Add(1)
		return
	}
	const versionsKept = 64 // clients choose the version: bound their number
	key := clientKind{stream, strings.Clone(version)}
	n, known := m.clients.Load(key)
	if !known {
		kept := 0
		m.clients.Range(func(any, any) bool { kept++; return kept < versionsKept })
		if kept >= versionsKept {
			key.version = "other"
		}
		n, _ = m.clients.LoadOrStore(key, new(atomic.Int64))
	}
	slot.Store(&clientCount{key.version, n.(*atomic.Int64)})
	n.(*atomic.Int64).Add(1)
}
