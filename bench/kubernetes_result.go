package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// KubernetesKind are the figures of one kind of operation.
type KubernetesKind struct {
	Kind string `json:"kind"`
	// AskedPS is the rate of the open loop; 0: the operations are parts of others.
	AskedPS   float64 `json:"asked_per_s"`
	DonePS    float64 `json:"done_per_s"`
	LatencyMS Latency `json:"latency_ms"` // from when they were due
}

// KubernetesWatch are the figures of the watch of a resource.
type KubernetesWatch struct {
	Resource string  `json:"resource"`
	EventsPS float64 `json:"events_per_s"`
	DelayMS  Latency `json:"delay_ms"` // from the request to its event
}

// KubernetesResult is the outcome on one kind of server.
type KubernetesResult struct {
	Protocol    string            `json:"protocol"`
	Nodes       int               `json:"nodes"` // members
	Kinds       []KubernetesKind  `json:"kinds"`
	Watches     []KubernetesWatch `json:"watches"`
	Conflicts   int64             `json:"conflicts"`
	Errors      int64             `json:"errors"`
	ErrorSample string            `json:"error_sample,omitempty"`
	// MemoryMB is the resident memory of each server at the end, in MiB.
	MemoryMB []float64 `json:"memory_mib"`
	CPUShares
	Verified   bool     `json:"verified"`
	Violations []string `json:"violations,omitempty"`
}

// KubernetesContest is the outcome of a KubernetesConfig.
type KubernetesContest struct {
	Objects     int     `json:"objects"`
	PodsPerNode int     `json:"pods_per_node"`
	ChurnPS     float64 `json:"churn_per_s"`
	Rate        float64 `json:"rate"`
	DurationS   float64 `json:"duration_s"`
	serverResults[*KubernetesResult]
}

func (r *KubernetesResult) violated() (server string, violations []string) {
	return r.Protocol, r.Violations
}

// result returns the figures of a run.
func (r *kubernetesRun) result(violations []string) *KubernetesResult {
	out := &KubernetesResult{Protocol: r.name, Nodes: len(r.servers.Endpoints), Conflicts: r.conflict.Load(),
		Errors: r.failed.Load(), MemoryMB: memoryOf(r.servers), Violations: violations}
	seconds := r.Duration.Seconds()
	for _, k := range r.kinds {
		out.Kinds = append(out.Kinds, KubernetesKind{k.kind, k.rate, float64(k.done.Load()) / seconds,
			latencyOf(k.took.merged())})
	}
	for _, w := range r.watched {
		h := w.delay.merged()
		out.Watches = append(out.Watches, KubernetesWatch{w.resource, float64(h.TotalCount()) / seconds, latencyOf(h)})
		if n := w.incomplete.Load(); n > 0 {
			out.Violations = append(out.Violations,
				fmt.Sprintf("%d events of %s lack the previous value", n, w.resource))
		}
	}
	if e := r.lastErr.Load(); e != nil {
		out.ErrorSample = (*e).Error()
	}
	if e := r.incomplete.Load(); e != nil {
		out.Violations = append(out.Violations, (*e).Error())
	}
	out.Verified = len(out.Violations) == 0
	return out
}

// newKubernetesContest returns the result of some runs, nil if there are none.
func newKubernetesContest(c *KubernetesConfig, runs [][]*KubernetesResult) *KubernetesContest {
	out := &KubernetesContest{Objects: c.Objects, PodsPerNode: c.PodsPerNode, ChurnPS: c.Churn, Rate: c.Rate,
		DurationS:     c.Duration.Seconds(),
		serverResults: newServerResults(&c.Contest, runs, medianKubernetesResult)}
	if len(out.Results) == 0 {
		return nil
	}
	return out
}

func medianKubernetesResult(runs []*KubernetesResult) *KubernetesResult {
	m := *runs[0]
	m.Kinds, m.Watches, m.Violations, m.Conflicts, m.Errors, m.Verified = nil, nil, nil, 0, 0, true
	for i := range runs[0].Kinds {
		f := medianRates(runs, func(r *KubernetesResult) (float64, Latency) {
			return r.Kinds[i].DonePS, r.Kinds[i].LatencyMS
		})
		k := runs[0].Kinds[i]
		m.Kinds = append(m.Kinds, KubernetesKind{k.Kind, k.AskedPS, f.ThroughputPS, f.LatencyMS})
	}
	for i := range runs[0].Watches {
		f := medianRates(runs, func(r *KubernetesResult) (float64, Latency) {
			return r.Watches[i].EventsPS, r.Watches[i].DelayMS
		})
		m.Watches = append(m.Watches, KubernetesWatch{runs[0].Watches[i].Resource, f.ThroughputPS, f.LatencyMS})
	}
	m.MemoryMB = medianEach(runs, func(r *KubernetesResult) []float64 { return r.MemoryMB })
	setMedians(&m, runs, func(r *KubernetesResult) []*float64 {
		return []*float64{&r.StolenPercent, &r.OthersPercent}
	})
	for _, r := range runs {
		m.Violations = append(m.Violations, r.Violations...)
		m.Conflicts += r.Conflicts
		m.Errors += r.Errors
		m.Verified = m.Verified && r.Verified
	}
	return &m
}

// medianRates returns the medians of a rate and of its latencies.
func medianRates(runs []*KubernetesResult, of func(*KubernetesResult) (float64, Latency)) Figures {
	var figures []Figures
	for _, r := range runs {
		rate, latency := of(r)
		figures = append(figures, Figures{ThroughputPS: rate, LatencyMS: latency})
	}
	return medianFigures(figures)
}

// WriteText writes the result as tables.
func (c *KubernetesContest) WriteText(w io.Writer) {
	fmt.Fprintf(w, "%d members, %d nodes with %d pods each, %s pods/s created and deleted, rates × %g, %g s, "+
		"medians of %d rounds on %d cores, %s\n", c.Results[0].Nodes, c.Objects, c.PodsPerNode,
		number(c.ChurnPS*c.Rate), c.Rate, c.DurationS, c.Rounds, c.Machine.Cores, c.Machine.Filesystem)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "\t\tasked/s\tdone/s\tp50 ms\tp99 ms\t")
	row := func(protocol, kind, asked string, done float64, l Latency) {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t\n", protocol, kind, asked, number(done),
			measured(l.P50), measured(l.P99))
	}
	for _, r := range c.Results {
		for _, k := range r.Kinds {
			asked := "-"
			if k.AskedPS > 0 {
				asked = number(k.AskedPS)
			}
			row(r.Protocol, k.Kind, asked, k.DonePS, k.LatencyMS)
		}
		for _, k := range r.Watches {
			row(r.Protocol, "events of "+k.Resource, "-", k.EventsPS, k.DelayMS)
		}
	}
	_ = tw.Flush()
	for _, r := range c.Results {
		fmt.Fprintf(w, "%s: %d errors, %d conflicts; of the CPU %.1f %% stolen, %.1f %% used by others\n", r.Protocol,
			r.Errors, r.Conflicts, r.StolenPercent, r.OthersPercent)
		if r.ErrorSample != "" {
			fmt.Fprintf(w, "%s: an error: %s\n", r.Protocol, r.ErrorSample)
		}
		writeWarnings(w, r.Protocol, r.Warning())
		writeMemory(w, r.Protocol, r.MemoryMB)
		writeVerified(w, r.Protocol, "each watch received exactly the events of its objects, in order", r.Violations)
	}
}
