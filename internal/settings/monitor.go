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
}

// Values of --metrics.
const (
	basicMetrics     = "basic"
	extensiveMetrics = "extensive"
)

func (m *Monitor) flags(f *pflag.FlagSet) {
	f.StringVar(&m.metrics, "metrics", basicMetrics,
		"basic; or extensive, with a histogram of the time that calls of each method of gRPC take")
	f.DurationVar(&m.WarnApply, "warning-apply-duration", 100*time.Millisecond,
		"time above which applying a command is logged")
	f.DurationVar(&m.WarnRequest, "warning-unary-request-duration", 300*time.Millisecond,
		"time above which a request is logged, one a second at most")
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
	return errors.Join(errs...)
}
