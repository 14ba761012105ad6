package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/braidlog/braid"
)

// View is the state from which metrics are read at one moment, except counters.
type View struct {
	ID                  braid.MemberID
	Led, Leads, Learner bool         // every instance has a leader; this member leads, or is a learner
	Committed, Applied  uint64       // index, as etcd's API has it
	Log                 braid.Status // the status of the log
	Start               time.Time    // of the server
	// Bytes of the database, and of its quota.
	DBSize, DBSizeInUse, QuotaBytes int64
	// Connections of clients that are open, and may be.
	Connections, ConnectionLimit int
	// RefusedConnections and RefusedRequests are those beyond the limits of a client, a user or a prefix.
	RefusedConnections, RefusedRequests int64
	Features                            []Feature
	// ClientIn and ClientOut are bytes of gRPC from and to clients.
	ClientIn, ClientOut int64
	// Alarms are those that are raised now, of all members.
	Alarms []Alarm
}

// Alarm is an alarm of a member.
type Alarm struct {
	Name   string // as NOSPACE
	Member braid.MemberID
}

// Collector implements prometheus.Collector for a server. It is safe for concurrent use if view is.
type Collector struct {
	counts *Counts
	view   func() View
}

// NewCollector returns a collector of counters, and of a view that is taken when metrics are collected.
func NewCollector(counts *Counts, view func() View) *Collector { return &Collector{counts, view} }

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range families {
		ch <- f.Desc
	}
	for _, o := range c.counts.observed.collectors() {
		o.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	emit := func(f *family, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(f.Desc, f.kind, value, labels...)
	}
	v := c.view()
	collectMember(&v, emit)
	ch <- syncTimes(&v)
	collectStages(&v.Log.Stages, ch)
	collectSnapshots(&v.Log.SnapshotTimes, ch, emit)
	for _, o := range c.counts.observed.collectors() {
		o.Collect(ch)
	}
	for kind, d := range c.counts.observed.requests {
		for i := range d {
			d[i].collect(ch, kind, strconv.FormatBool(i == 1))
		}
	}
	collectInstances(&v.Log, emit)
	collectFit(&v.Log.Fit, emit)
	collectRequests(c.counts, emit)
}

// Gatherer gathers a server's own metrics and, below them, what the packages of etcd's
// state machine keep in the process's default registry, but not those that are [Absent].
type Gatherer struct {
	Own     prometheus.Gatherer
	Process prometheus.Gatherer // nil: the server's own alone
}

// Gather implements prometheus.Gatherer.
func (g Gatherer) Gather() ([]*dto.MetricFamily, error) {
	families, err := g.Own.Gather()
	if g.Process == nil {
		return families, err
	}
	taken := make(map[string]bool, len(families))
	for _, f := range families {
		taken[f.GetName()] = true
	}
	rest, restErr := g.Process.Gather()
	for _, f := range rest {
		name := f.GetName()
		if _, absent := Absent[name]; !absent && !taken[name] && !declared(name) {
			families = append(families, f)
		}
	}
	if err == nil {
		err = restErr
	}
	return families, err
}
