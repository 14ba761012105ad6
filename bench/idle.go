package bench

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"
)

// IdleFigures is what the members of a cluster use while nothing is proposed.
type IdleFigures struct {
	// CPUPercent is the CPU of all members, in percent of a core.
	CPUPercent float64 `json:"cpu_percent_of_core"`
	EgressBS   float64 `json:"egress_bytes_per_s"`
	FsyncsPS   float64 `json:"fsyncs_per_s"`
	// CPUSpread are the lowest and the highest CPUPercent of the rounds.
	CPUSpread [2]float64 `json:"cpu_percent_spread"`
}

// idle measures the members while nothing is proposed. The warm-up is as idle as the measurement.
func (r *logRun) idle(ctx context.Context) (*LogResult, error) {
	r.g = newGenerator(r.cluster, r.Load) // which is not started
	r.began = time.Now()
	if err := r.sleep(ctx, r.Load.Warmup, "warming up"); err != nil {
		return nil, fmt.Errorf("%s: interrupted before anything was measured", r.Protocol)
	}
	from := r.read()
	interrupted := r.sleep(ctx, r.Load.Duration, "measuring") != nil
	to := r.read()
	seconds := to.at.Sub(from.at).Seconds()
	out := &LogResult{
		Figures: Figures{Protocol: r.Protocol, Nodes: r.Nodes, Payload: r.Load.Payload, DurationS: seconds,
			CPUShares: from.ticks.shares(to.ticks, to.cpu-from.cpu), Interrupted: interrupted},
		Idle: &IdleFigures{CPUPercent: 100 * (to.cpu - from.cpu).Seconds() / seconds,
			FsyncsPS: float64(to.stats.Fsyncs-from.stats.Fsyncs) / seconds},
		Mode: r.Load.Mode(), WarmupS: r.Load.Warmup.Seconds(), Verified: true, Settings: r.Settings,
		DataDir: filepath.Clean(r.Dir), Machine: DescribeMachine(r.Dir), Date: from.at.UTC().Truncate(time.Second),
	}
	for i, sent := range to.stats.EgressBytes {
		out.Idle.EgressBS += float64(sent-from.stats.EgressBytes[i]) / seconds
	}
	out.Idle.CPUSpread = [2]float64{out.Idle.CPUPercent, out.Idle.CPUPercent}
	return out, nil
}

// medianIdle returns the median of each figure over some runs; nil if these were not idle.
func medianIdle(runs []*LogResult) *IdleFigures {
	if runs[0].Idle == nil {
		return nil
	}
	var cpu, egress, fsyncs []float64
	for _, r := range runs {
		cpu, egress = append(cpu, r.Idle.CPUPercent), append(egress, r.Idle.EgressBS)
		fsyncs = append(fsyncs, r.Idle.FsyncsPS)
	}
	return &IdleFigures{CPUPercent: median(cpu), EgressBS: median(egress), FsyncsPS: median(fsyncs),
		CPUSpread: [2]float64{slices.Min(cpu), slices.Max(cpu)}}
}

// writeIdle writes the results of runs in which nothing was proposed as a table.
func writeIdle(w io.Writer, results []*LogResult) {
	r := results[0]
	fmt.Fprintf(w, "%d idle members in one process, heartbeats of %v, %.1f s, medians of %d rounds on %d cores, "+
		"%s (%s)\n", r.Nodes, Heartbeat, r.DurationS, max(r.Rounds, 1), r.Machine.Cores, r.Machine.Filesystem,
		r.DataDir)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "\tCPU, % of a core\t(spread)\tegress B/s\tfsyncs/s\tstolen %\tothers %\t")
	for _, r := range results {
		fmt.Fprintf(tw, "%s\t%s\t%s – %s\t%s\t%s\t%.1f\t%.1f\t\n", r.Protocol, number(r.Idle.CPUPercent),
			number(r.Idle.CPUSpread[0]), number(r.Idle.CPUSpread[1]), measured(r.Idle.EgressBS),
			measured(r.Idle.FsyncsPS), r.StolenPercent, r.OthersPercent)
	}
	_ = tw.Flush()
	r.writeInterrupted(w)
}
