package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
)

// ofCounts are metrics of the counters of the services.
var ofCounts = newTable(nil,
	counter("etcd_server_leader_changes_seen_total", "The number of leader changes seen.",
		func(c *Counts) float64 { return float64(c.LeaderChanges.Load()) }),
	gauge("etcd_server_proposals_pending", "The current number of pending proposals to commit.",
		func(c *Counts) float64 { return float64(c.Pending.Load()) }),
	counter("etcd_server_proposals_failed_total", "The total number of failed proposals seen.",
		func(c *Counts) float64 { return float64(c.Failed.Load()) }),
	counter("etcd_server_read_indexes_failed_total", "The total number of failed read indexes seen.",
		func(c *Counts) float64 { return float64(c.SlowReads.Load()) }),
	counter("etcd_debugging_server_lease_expired_total", "The total number of expired leases.",
		func(c *Counts) float64 { return float64(c.Expired.Load()) }),
	counter("etcd_debugging_lease_renewed_total", "The number of renewed leases seen by the leader.",
		func(c *Counts) float64 { return float64(c.Renewed.Load()) }),
	counter("braid_accepted_puts_total", "Puts that were answered before they were applied.",
		func(c *Counts) float64 { return float64(c.Accepted.Load()) }),
	counter("braid_token_calls_total", "Calls with tokens of accepted puts, which they waited for.",
		func(c *Counts) float64 { return float64(c.Tokens.Load()) }),
	counter("etcd_server_health_success", "The total number of successful health checks",
		func(c *Counts) float64 { return float64(c.HealthOK.Load()) }),
	counter("etcd_server_health_failures", "The total number of failed health checks",
		func(c *Counts) float64 { return float64(c.HealthNo.Load()) }),
	gauge("braid_watch_streams", "Watch streams open.",
		func(c *Counts) float64 { return float64(c.WatchStreams.Load()) }),
	gauge("braid_watches", "Watches open.",
		func(c *Counts) float64 { return float64(c.Watches.Load()) }),
	counter("braid_watch_events_sent_total", "Watch events sent to clients.",
		func(c *Counts) float64 { return float64(c.Events.Load()) }),
)

var methodLabels = []string{"grpc_type", "grpc_service", "grpc_method"}

// Calls, by method and version of the client.
var (
	clientRequests = newFamily(prometheus.CounterValue, "etcd_server_client_requests_total",
		"The total number of client requests per client version.", "type", "client_api_version")
	started = newFamily(prometheus.CounterValue, "grpc_server_started_total",
		"Total number of RPCs started on the server.", methodLabels...)
	handled = newFamily(prometheus.CounterValue, "grpc_server_handled_total",
		"Total number of RPCs completed on the server, regardless of success or failure.",
		append(methodLabels, "grpc_code")...)
	received = newFamily(prometheus.CounterValue, "grpc_server_msg_received_total",
		"Total number of RPC stream messages received on the server.", methodLabels...)
	sent = newFamily(prometheus.CounterValue, "grpc_server_msg_sent_total",
		"Total number of gRPC stream messages sent by the server.", methodLabels...)
)

// collectRequests reads the counters of the services.
func collectRequests(c *Counts, emit Emit) {
	ofCounts.collect(c, emit)
	c.clients.Range(func(key, n any) bool {
		kind, k := "unary", key.(clientKind)
		if k.stream {
			kind = "stream"
		}
		emit(clientRequests, float64(n.(*atomic.Int64).Load()), kind, k.version)
		return true
	})
	for _, m := range c.methods {
		m.collect(emit)
	}
}

func (m *Method) collect(emit Emit) {
	labels := []string{m.kind, m.service, m.method}
	emit(started, float64(m.started.Load()), labels...)
	for code := range m.handled {
		if n := m.handled[code].Load(); n > 0 || code == int(codes.OK) {
			emit(handled, float64(n), append(labels, codes.Code(code).String())...)
		}
	}
	in, out := m.received.Load(), m.sent.Load()
	if m.kind == "unary" { // one message in each direction; a failed call has no response
		in, out = m.started.Load(), m.handled[codes.OK].Load()
	}
	emit(received, float64(in), labels...)
	emit(sent, float64(out), labels...)
}
