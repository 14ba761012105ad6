package metrics

import (
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/etcdserver/txn"
)

// observed are the metrics that change as things happen, because they have a value for each set of labels that is not
// known before, or a distribution.
type observed struct {
	trips     *prometheus.HistogramVec // by member
	requests  map[string]*durations    // by type; filled before the server serves
	handling  *prometheus.HistogramVec // by method; nil: not extensive
	health    *prometheus.GaugeVec     // by type and name of the check
	checked   *prometheus.CounterVec   // the same and status
	promoted  prometheus.Counter
	refused   *prometheus.CounterVec // promotions by reason
	streaming *prometheus.CounterVec // failures by direction and API
	stages    *stages
}

func newObserved(extensive bool) *observed {
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	times := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	o := &observed{
		trips: times("etcd_network_peer_round_trip_time_seconds", "Round-Trip-Time histogram between peers",
			prometheus.ExponentialBuckets(0.0001, 2, 16), "To"),
		requests: map[string]*durations{},
		health: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "etcd_server_healthcheck",
			Help: "The result of each kind of healthcheck."}, []string{"type", "name"}),
		checked: counters("etcd_server_healthchecks_total", "The total number of each kind of healthcheck.",
			"type", "name", "status"),
		promoted: prometheus.NewCounter(prometheus.CounterOpts{Name: "etcd_server_learner_promote_successes",
			Help: "The total number of successful learner promotions while this member is leader."}),
		refused: counters("etcd_server_learner_promote_failures", "The total number of failed learner promotions (likely "+
			"learner not ready) while this member is leader.", "Reason"),
		streaming: counters("etcd_network_server_stream_failures_total",
			"The total number of stream failures from the local server.", "Type", "API"),
		stages: newStages(),
	}
	if extensive {
		o.handling = times("grpc_server_handling_seconds", "Histogram of response latency (seconds) of gRPC that had been "+
			"application-level handled by the server.", prometheus.DefBuckets, methodLabels...)
	}
	return o
}

// collectors are all of them.
func (o *observed) collectors() []prometheus.Collector {
	all := []prometheus.Collector{o.trips, o.health, o.checked, o.promoted, o.refused, o.streaming,
		o.stages.all}
	if o.handling != nil {
		all = append(all, o.handling)
	}
	return all
}

// Trip counts a round trip to another member, as its id is written.
func (m *Counts) Trip(to string, took time.Duration) {
	m.observed.trips.WithLabelValues(to).Observe(took.Seconds())
}

// Checked counts a health check of a type, "livez" or "readyz", by its outcome.
func (m *Counts) Checked(kind, name string, err error) {
	status := "success"
	if err != nil {
		status = "error"
	}
	m.observed.health.WithLabelValues(kind, name).Set(truth(err == nil))
	m.observed.checked.WithLabelValues(kind, name, status).Inc()
}

// Promoted counts an attempt to make a learner a voter, by the leader.
func (m *Counts) Promoted(err error) {
	if err == nil {
		m.observed.promoted.Inc()
		return
	}
	reason := status.Convert(err).Message()
	if !slices.Contains(refusals, reason) {
		reason = "other"
	}
	m.observed.refused.WithLabelValues(reason).Inc()
}

// refusals are the reasons for which a learner is not promoted, besides those of the log.
var refusals = []string{rpctypes.ErrMemberNotFound.Error(), rpctypes.ErrMemberNotLearner.Error(),
	rpctypes.ErrMemberLearnerNotReady.Error(), rpctypes.ErrTimeout.Error()}

// requestTypes are the types of requests in etcd's histogram of durations, by method.
var requestTypes = map[string]string{
	"Range": typeRange, "Put": "Put", "DeleteRange": "DeleteRange", "Txn": "Txn", "Compact": "Compaction",
	"LeaseGrant": "LeaseGrant", "LeaseRevoke": "LeaseRevoke", "Alarm": "Alarm", "Authenticate": "Authenticate",
	"AuthEnable": "AuthEnable", "AuthDisable": "AuthDisable", "AuthStatus": "AuthStatus", "UserAdd": "AuthUserAdd",
	"UserDelete": "AuthUserDelete", "UserChangePassword": "AuthUserChangePassword", "UserGrantRole": "AuthUserGrantRole",
	"UserGet": "AuthUserGet", "UserList": "AuthUserList", "UserRevokeRole": "AuthUserRevokeRole",
	"RoleAdd": "AuthRoleAdd", "RoleGrantPermission": "AuthRoleGrantPermission", "RoleGet": "AuthRoleGet",
	"RoleList": "AuthRoleList", "RoleRevokePermission": "AuthRoleRevokePermission", "RoleDelete": "AuthRoleDelete",
}

// method makes the counter of a method.
func (o *observed) method(service, name, kind string) *Method {
	m := &Method{observed: o, service: service, method: name, kind: kind}
	if o.handling != nil {
		m.handling = o.handling.WithLabelValues(kind, service, name)
	}
	if of := requestTypes[name]; of != "" && strings.HasPrefix(service, "etcdserverpb.") {
		m.times = o.durations(of)
		if name == "Txn" {
			m.reads = o.durations(typeReadTxn)
		}
	}
	return m
}

// durations are the times of a type of requests: of those that failed, and of others.
type durations [2]Times

func (o *observed) durations(kind string) *durations {
	if o.requests[kind] == nil {
		o.requests[kind] = new(durations)
	}
	return o.requests[kind]
}

// took counts how long a call took. req is nil for a stream.
func (c *Method) took(req any, err error, took time.Duration) {
	if c.handling != nil {
		c.handling.Observe(took.Seconds())
	}
	if c.times == nil {
		return
	}
	to := c.times
	if r, ok := req.(*pb.TxnRequest); ok && txn.IsTxnReadonly(r) {
		to = c.reads
	}
	if success, counts := outcome(status.Code(err)); counts {
		to[int(truth(success))].Observe(took)
	}
}

// outcome is what etcd counts of a request: a success if it was ordered or read, whatever came of it, and nothing if
// it was refused before.
func outcome(code codes.Code) (success, counts bool) {
	switch code {
	case codes.OK, codes.NotFound, codes.FailedPrecondition, codes.OutOfRange, codes.AlreadyExists:
		return true, true
	case codes.InvalidArgument, codes.Unauthenticated, codes.PermissionDenied, codes.Unimplemented:
		return false, false
	}
	return false, true
}

// streams are the APIs whose failures etcd counts, by method.
var streams = map[string]string{"Watch": "watch", "LeaseKeepAlive": "lease-keepalive"}

// fails counts a message of a stream that was not received or sent.
func (c *Method) fails(direction string) {
	if api := streams[c.method]; api != "" && strings.HasPrefix(c.service, "etcdserverpb.") {
		c.observed.streaming.WithLabelValues(direction, api).Inc()
	}
}
