package store

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// etcd's metrics of defragmentations, which its package registers and keeps to itself.
var (
	defragmenting = registered(prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "etcd", Subsystem: "disk", Name: "defrag_inflight",
		Help: "Whether or not defrag is active on the member. 1 means active, 0 means not.",
	}))
	defragmentSeconds = registered(prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: "etcd", Subsystem: "disk", Name: "backend_defrag_duration_seconds",
		Help: "The latency distribution of backend defragmentation.", Buckets: prometheus.ExponentialBuckets(.1, 2, 13),
	}))
)

// registered returns the metric of the same name that is registered already.
func registered[M prometheus.Collector](m M) M {
	if there := (prometheus.AlreadyRegisteredError{}); errors.As(prometheus.Register(m), &there) {
		return there.ExistingCollector.(M)
	}
	return m
}

// observeDefragmentation records one, which ends with the call of the result.
func observeDefragmentation() (end func()) {
	began := time.Now()
	defragmenting.Set(1)
	return func() {
		defragmenting.Set(0)
		defragmentSeconds.Observe(time.Since(began).Seconds())
	}
}
