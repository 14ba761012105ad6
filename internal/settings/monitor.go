package settings

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// Monitor is what a member measures and warns of.
type Monitor struct {
	metrics string
	// WarnApply and WarnRequest are times above which applying a command, and a request, are logged.
	WarnApply, WarnRequest time.Duration
	// Tracing sends spans of OpenTelemetry to TracingAddress, of TracingRate calls in a million. TracingService is the
	// name of the cluster there, and TracingInstance that of the member.
	Tracing                                         bool
	TracingAddress, TracingService, TracingInstance string
	TracingRate                                     int
}

// Values of --metrics.
const (
	basicMetrics     = "basic"
	extensiveMetrics = "extensive"
)

const maxTracingRate = 1_000_000

func (m *Monitor) flags(f *pflag.FlagSet) {
	f.StringVar(&m.metrics, "metrics", basicMetrics,
		"basic; or extensive, with a histogram of the time that calls of each method of gRPC take")
	f.DurationVar(&m.WarnApply, "warning-apply-duration", 100*time.Millisecond,
		"time above which applying a command is logged")
	f.DurationVar(&m.WarnRequest, "warning-unary-request-duration", 300*time.Millisecond,
		"time above which a request is logged, one a second at most")
	f.BoolVar(&m.Tracing, "enable-distributed-tracing", false,
		"send spans of OpenTelemetry to a collector, for calls and their stages")
	f.StringVar(&m.TracingAddress, "distributed-tracing-address", "localhost:4317",
		"where the collector takes OTLP over gRPC, in clear text")
	f.StringVar(&m.TracingService, "distributed-tracing-service-name", "etcd",
		"name of the service in spans, the same for all members")
	f.StringVar(&m.TracingInstance, "distributed-tracing-instance-id", "",
		"id of this member in spans, different for each; none: they have no id")
	f.IntVar(&m.TracingRate, "distributed-tracing-sampling-rate", 0,
		"how many of a million calls are traced, besides those whose client wants it")
}

// ExtensiveMetrics reports whether the time of each call of gRPC is measured, by method.
func (m *Monitor) ExtensiveMetrics() bool { return m.metrics == extensiveMetrics }

func (m *Monitor) check() error {
	var errs []error
	if m.metrics != basicMetrics && m.metrics != extensiveMetrics {
		errs = append(errs, fmt.Errorf("--metrics %q: it is basic or extensive", m.metrics))
	}
	if m.WarnApply <= 0 {
		errs = append(errs, fmt.Errorf("--warning-apply-duration %s: it is more than 0", m.WarnApply))
	}
	if m.WarnRequest <= 0 {
		errs = append(errs, fmt.Errorf("--warning-unary-request-duration %s: it is more than 0", m.WarnRequest))
	}
	if m.Tracing && (m.TracingRate < 0 || m.TracingRate > maxTracingRate) {
		errs = append(errs, fmt.Errorf("--distributed-tracing-sampling-rate %d: it is at least 0 and at most %d",
			m.TracingRate, maxTracingRate))
	}
	return errors.Join(errs...)
}
