package metrics

import (
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
	Expired            atomic.Int64
	Accepted, Tokens   atomic.Int64 // puts answered before they were applied; calls with tokens
	WatchStreams       atomic.Int64
	Events             atomic.Int64

	trips *prometheus.HistogramVec
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

// New makes the counts of a server.
func New() *Counts {
	return &Counts{methods: map[string]*Method{}, trips: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "etcd_network_peer_round_trip_time_seconds", Help: "Round-Trip-Time histogram between peers",
		Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
	}, []string{"To"})}
}

// Trip counts a round trip to another member, as its id is written.
func (m *Counts) Trip(to string, took time.Duration) {
	m.trips.WithLabelValues(to).Observe(took.Seconds())
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
			m.methods["/"+service+"/"+method.Name] = &Method{service: service, method: method.Name, kind: kind}
		}
	}
}

// Method returns the counter of a method by its full name. It is nil if the server has no such method.
func (m *Counts) Method(name string) *Method { return m.methods[name] }

// Start counts a call that begins.
func (c *Method) Start() { c.started.Add(1) }

// Receive counts a message of a stream that was received.
func (c *Method) Receive() { c.received.Add(1) }

// Send counts a message of a stream that was sent.
func (c *Method) Send() { c.sent.Add(1) }

// End counts a call that has ended, with the status of err.
func (c *Method) End(err error) {
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
