package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latency is a distribution of latencies, in milliseconds.
type Latency struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

func latencyOf(h *hdrhistogram.Histogram) Latency {
	ms := func(us int64) float64 { return float64(us) / 1000 }
	return Latency{
		P50: ms(h.ValueAtQuantile(50)), P90: ms(h.ValueAtQuantile(90)), P99: ms(h.ValueAtQuantile(99)),
		P999: ms(h.ValueAtQuantile(99.9)), Max: ms(h.Max()),
	}
}

// Figures are the measurements of every run, of the log and of servers alike.
type Figures struct {
	Protocol     string  `json:"protocol"`
	Nodes        int     `json:"nodes"`
	Payload      int     `json:"payload"`
	ThroughputPS float64 `json:"throughput_per_s"`
	LatencyMS    Latency `json:"latency_ms"`
	Errors       int64   `json:"errors"`
	CPUMicrosOp  float64 `json:"cpu_us_per_op"`
	LeaderEgress float64 `json:"leader_egress_bytes_per_op"`
	DiskBytesOp  float64 `json:"disk_bytes_per_op"`
	FsyncsPS     float64 `json:"fsyncs_per_s"`
	DurationS    float64 `json:"duration_s"`
	Commands     int64   `json:"commands"`
	CPUShares
	Interrupted bool   `json:"interrupted,omitempty"`
	ErrorSample string `json:"error_sample,omitempty"`
}

// LogResult is the outcome of one run of the log benchmark.
type LogResult struct {
	Figures
	Idle             *IdleFigures `json:"idle,omitempty"` // nil: there were commands
	Mode             string       `json:"mode"`
	Inflight         int          `json:"inflight,omitempty"`
	Proposers        int          `json:"proposers,omitempty"`
	RatePS           float64      `json:"rate_per_s,omitempty"`
	WarmupS          float64      `json:"warmup_s"`
	Refused          int64        `json:"refused"`
	LatencySamples   int64        `json:"latency_samples"`
	Verified         bool         `json:"verified"`
	Violations       []string     `json:"violations,omitempty"`
	Settings         Settings     `json:"settings"`
	DataDir          string       `json:"data_dir"`
	Machine          MachineInfo  `json:"machine"`
	Date             time.Time    `json:"date"`
	Rounds           int          `json:"rounds,omitempty"`
	ThroughputSpread [2]float64   `json:"throughput_spread_per_s"` // lowest and highest of the rounds
}

// WriteJSON writes a value as indented JSON.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// WriteText writes the result as text.
func (r *LogResult) WriteText(w io.Writer) {
	if r.Idle != nil {
		writeIdle(w, []*LogResult{r})
		return
	}
	fmt.Fprintf(w, "%s%s, %d members, %s, %d-byte commands, %.1f s on %d cores, %s (%s); of the CPU %.1f %% stolen, "+
		"%.1f %% used by others\n",
		r.Protocol, r.Settings.describe(), r.Nodes, r.describeLoad(), r.Payload, r.DurationS, r.Machine.Cores,
		r.Machine.Filesystem, r.DataDir, r.StolenPercent, r.OthersPercent)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	r.writeFigures(tw, "command")
	if r.Refused > 0 {
		fmt.Fprintf(tw, "  refused and sent again\t%d\n", r.Refused)
	}
	_ = tw.Flush()
	r.writeInterrupted(w)
	writeWarnings(w, r.Protocol, r.Warning())
	if r.Verified {
		fmt.Fprintf(w, "verified: all members applied the same commands, each acknowledged one exactly once\n")
	}
	for _, v := range r.Violations {
		fmt.Fprintf(w, "VIOLATION: %s\n", v)
	}
}

// writeFigures writes the figures; op is the unit that was counted.
func (f *Figures) writeFigures(w io.Writer, op string) {
	l := f.LatencyMS
	fmt.Fprintf(w, "  throughput\t%s %ss/s\n", number(f.ThroughputPS), op)
	fmt.Fprintf(w, "  latency\tp50 %s  p90 %s  p99 %s  p99.9 %s  max %s ms\n",
		measured(l.P50), measured(l.P90), measured(l.P99), measured(l.P999), measured(l.Max))
	fmt.Fprintf(w, "  CPU\t%s µs/%s\n", measured(f.CPUMicrosOp), op)
	if f.LeaderEgress > 0 {
		fmt.Fprintf(w, "  leader's egress\t%s bytes/%s\n", number(f.LeaderEgress), op)
	}
	fmt.Fprintf(w, "  written to disks\t%s bytes/%s\n", measured(f.DiskBytesOp), op)
	if f.FsyncsPS > 0 {
		fmt.Fprintf(w, "  fsyncs\t%s/s\n", number(f.FsyncsPS))
	}
	fmt.Fprintf(w, "  errors\t%d", f.Errors)
	if f.ErrorSample != "" {
		fmt.Fprintf(w, "\t(%s)", f.ErrorSample)
	}
	fmt.Fprintln(w)
}

func (f *Figures) writeInterrupted(w io.Writer) {
	if f.Interrupted {
		fmt.Fprintln(w, "interrupted: these are the figures until then")
	}
}

func (r *LogResult) describeLoad() string {
	switch r.Mode {
	case "closed":
		return fmt.Sprintf("%d proposers", r.Proposers)
	case "rate":
		return fmt.Sprintf("%s commands/s", number(r.RatePS))
	default:
		return fmt.Sprintf("%d in flight", r.Inflight)
	}
}

// number writes a number with about three digits, and thousands separated.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a < 10:
		return fmt.Sprintf("%.2f", v)
	case a < 100:
		return fmt.Sprintf("%.1f", v)
	}
	digits := fmt.Sprintf("%.0f", v)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 && digits[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// median returns the median of some values; of none it is 0.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := slices.Clone(values)
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// medianFigures returns the median of each figure over some runs; errors are summed up.
func medianFigures(runs []Figures) Figures {
	m := runs[0]
	of := func(get func(*Figures) float64) float64 {
		values := make([]float64, len(runs))
		for i := range runs {
			values[i] = get(&runs[i])
		}
		return median(values)
	}
	m.ThroughputPS = of(func(f *Figures) float64 { return f.ThroughputPS })
	m.LatencyMS = Latency{
		P50:  of(func(f *Figures) float64 { return f.LatencyMS.P50 }),
		P90:  of(func(f *Figures) float64 { return f.LatencyMS.P90 }),
		P99:  of(func(f *Figures) float64 { return f.LatencyMS.P99 }),
		P999: of(func(f *Figures) float64 { return f.LatencyMS.P999 }),
		Max:  of(func(f *Figures) float64 { return f.LatencyMS.Max }),
	}
	m.CPUMicrosOp = of(func(f *Figures) float64 { return f.CPUMicrosOp })
	m.LeaderEgress = of(func(f *Figures) float64 { return f.LeaderEgress })
	m.DiskBytesOp = of(func(f *Figures) float64 { return f.DiskBytesOp })
	m.FsyncsPS = of(func(f *Figures) float64 { return f.FsyncsPS })
	m.StolenPercent = of(func(f *Figures) float64 { return f.StolenPercent })
	m.OthersPercent = of(func(f *Figures) float64 { return f.OthersPercent })
	m.DurationS = of(func(f *Figures) float64 { return f.DurationS })
	m.Errors, m.Commands, m.Interrupted, m.ErrorSample = 0, 0, false, ""
	for i := range runs {
		m.Errors += runs[i].Errors
		m.Commands += runs[i].Commands
		m.Interrupted = m.Interrupted || runs[i].Interrupted
		if m.ErrorSample == "" {
			m.ErrorSample = runs[i].ErrorSample
		}
	}
	return m
}

// spread returns the lowest and the highest throughput.
func spread(runs []Figures) [2]float64 {
	s := [2]float64{math.Inf(1), 0}
	for i := range runs {
		s[0] = min(s[0], runs[i].ThroughputPS)
		s[1] = max(s[1], runs[i].ThroughputPS)
	}
	return s
}
