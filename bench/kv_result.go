package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/braidlog/braid/bench/workload"
)

// KVResult is the outcome of a KVConfig.
type KVResult struct {
	Figures
	Mode              string   `json:"mode"` // "closed" or "rate"
	ClientCPUMicrosOp float64  `json:"client_cpu_us_per_op"`
	Endpoints         []string `json:"endpoints"`
	Version           string   `json:"version"`
	Clients           int      `json:"clients"`
	Conns             int      `json:"conns"`
	KeySize           int      `json:"key_size"`
	ValSize           int      `json:"val_size"` // the largest
	ValSizes          string   `json:"val_sizes"`
	KeySpace          int      `json:"key_space"`
	Distribution      string   `json:"distribution"`
	Mix               string   `json:"mix"`
	Batch             int      `json:"batch,omitempty"` // puts of a message
	WriteRatio        float64  `json:"write_ratio"`
	Seed              uint64   `json:"seed"`
	RatePS            float64  `json:"rate_per_s,omitempty"`
	ThrottlePS        float64  `json:"throttle_per_s,omitempty"`
	WarmupS           float64  `json:"warmup_s"`
	TargetLeader      bool     `json:"target_leader,omitempty"`
	PutLatencyMS      *Latency `json:"put_latency_ms,omitempty"`
	GetLatencyMS      *Latency `json:"get_latency_ms,omitempty"`
	Operations        []KVKind `json:"operations"`
	LatencySamples    int64    `json:"latency_samples"`
	// Backlog counts the requests of an open loop that were due when the run ended, and had not been started by any
	// client.
	Backlog   int64 `json:"backlog,omitempty"`
	NotFound  int64 `json:"not_found,omitempty"` // reads of missing keys
	Conflicts int64 `json:"conflicts,omitempty"` // read-modify-writes that were too late
	// Verified indicates that the run was checked and is correct; Violations are the reasons if it is not.
	Verified   bool     `json:"verified"`
	Violations []string `json:"violations,omitempty"`
	History    *Verdict `json:"history,omitempty"`
	// KeysLeft is the reason why the keys of a checked run are still there; "" if they are not.
	KeysLeft string `json:"keys_left,omitempty"`
	// MemoryMB is the resident memory of each server that was started, after the run, in MiB. OwnMB is the same without
	// pages of files.
	MemoryMB         []float64   `json:"memory_mib,omitempty"`
	OwnMB            []float64   `json:"own_memory_mib,omitempty"`
	Machine          MachineInfo `json:"machine"`
	Date             time.Time   `json:"date"`
	Rounds           int         `json:"rounds,omitempty"`
	ThroughputSpread [2]float64  `json:"throughput_spread_per_s"`
}

// KVKind are the figures of one kind of operation.
type KVKind struct {
	Kind      string  `json:"kind"`
	Count     int64   `json:"count"`
	LatencyMS Latency `json:"latency_ms"`
}

func (r *kvRun) result(from, to kvReading, cluster *kvCluster) *KVResult {
	requests := to.ok - from.ok
	seconds := to.at.Sub(from.at).Seconds()
	perOp := func(v float64) float64 { return v / float64(requests) }
	w := &r.Workload
	out := &KVResult{
		Mode: "closed", ClientCPUMicrosOp: perOp(float64((to.client - from.client).Nanoseconds()) / 1000),
		Endpoints: cluster.endpoints, Version: cluster.version, Clients: r.Clients, Conns: r.Conns,
		KeySize: r.KeySize, ValSize: w.Values.Max, ValSizes: w.Values.String(), KeySpace: w.KeySpace,
		Distribution: w.Keys.String(), Mix: w.Mix.String(), WriteRatio: w.Mix.Writes(), Seed: w.Seed,
		Batch: r.Batch, RatePS: r.Rate, ThrottlePS: r.Throttle, WarmupS: r.Warmup.Seconds(),
		TargetLeader: r.TargetLeader,
		NotFound:     r.notFound.Load(), Conflicts: r.conflicts.Load(),
		Machine: DescribeMachine("."), Date: from.at.UTC().Truncate(time.Second),
	}
	if r.pace != nil {
		out.Mode, out.Backlog = "rate", r.pace.Behind(to.at.Sub(r.origin)-time.Duration(r.loadFrom))
		if r.Total > 0 {
			out.Backlog = min(out.Backlog, max(0, r.Total-r.issued.Load()))
		}
	}
	out.Figures = Figures{
		Protocol: r.Protocol, Nodes: cluster.members, Payload: w.Values.Max,
		ThroughputPS: float64(requests) / seconds, Errors: to.failed - from.failed,
		CPUMicrosOp:  perOp(max(0, float64((to.servers-from.servers).Nanoseconds())/1000)),
		LeaderEgress: perOp(max(0, to.metrics.leaderEgress-from.metrics.leaderEgress)),
		DiskBytesOp:  perOp(to.written.since(from.written)),
		FsyncsPS:     max(0, to.metrics.fsyncs-from.metrics.fsyncs) / seconds,
		DurationS:    seconds, Commands: requests,
		CPUShares: from.ticks.shares(to.ticks, to.client-from.client+to.servers-from.servers),
	}
	r.latencies(out)
	if len(r.Servers) == 0 {
		out.OthersPercent = 0 // the servers themselves may be among the others
	}
	out.ThroughputSpread = [2]float64{out.ThroughputPS, out.ThroughputPS}
	if e := r.lastErr.Load(); e != nil {
		out.ErrorSample = (*e).Error()
	}
	return out
}

// latencies puts the latencies into the result: of everything, of writes and reads apart,
// and of each kind of operation.
func (r *kvRun) latencies(out *KVResult) {
	all, writes, reads := newHistogram(), newHistogram(), newHistogram()
	for kind := range workload.Kind(workload.Kinds) {
		h := r.took[kind].merged()
		if h.TotalCount() == 0 {
			continue
		}
		out.Operations = append(out.Operations, KVKind{kind.String(), h.TotalCount(), latencyOf(h)})
		all.Merge(h)
		if kind.Writes() {
			writes.Merge(h)
		} else {
			reads.Merge(h)
		}
	}
	out.LatencyMS, out.LatencySamples = latencyOf(all), all.TotalCount()
	if writes.TotalCount() > 0 && reads.TotalCount() > 0 {
		w, g := latencyOf(writes), latencyOf(reads)
		out.PutLatencyMS, out.GetLatencyMS = &w, &g
	}
}

// judged adds a verdict to the result.
func (r *KVResult) judged(v *Verdict) {
	r.History, r.Verified = v, v.Verdict == Linearizable
	if !r.Verified {
		r.Violations = append(r.Violations, v.Verdict+": "+v.Detail)
	}
}

// describeLoad describes the clients' requests.
func (r *KVResult) describeLoad() string {
	s := fmt.Sprintf("%d clients on %d connections", r.Clients, r.Conns)
	switch {
	case r.Mode == "rate":
		s += fmt.Sprintf(", open loop of %s/s", number(r.RatePS))
	case r.ThrottlePS > 0:
		s += fmt.Sprintf(", throttled to %s/s", number(r.ThrottlePS))
	}
	if r.Batch > 0 {
		s += fmt.Sprintf(", messages of %d puts", r.Batch)
	}
	return s + fmt.Sprintf(", %s (%.3g %% writes), %s-byte values, %d keys (%s)", r.Mix, 100*r.WriteRatio, r.ValSizes,
		r.KeySpace, r.Distribution)
}

// WriteText writes the result as text.
func (r *KVResult) WriteText(w io.Writer) {
	fmt.Fprintf(w, "%s (version %s), %d members, %s, %.1f s on %d cores, %.1f %% of the CPU stolen\n",
		r.Protocol, r.Version, r.Nodes, r.describeLoad(), r.DurationS, r.Machine.Cores, r.StolenPercent)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	r.writeFigures(tw, "request")
	if len(r.Operations) > 1 {
		for _, o := range r.Operations {
			fmt.Fprintf(tw, "  of which %s\t%s, p50 %s  p99 %s  max %s ms\n", o.Kind, number(float64(o.Count)),
				measured(o.LatencyMS.P50), measured(o.LatencyMS.P99), measured(o.LatencyMS.Max))
		}
	}
	for _, count := range []struct {
		name string
		n    int64
	}{{"due, but not begun", r.Backlog}, {"not found", r.NotFound}, {"conflicts", r.Conflicts}} {
		if count.n > 0 {
			fmt.Fprintf(tw, "  %s\t%s\n", count.name, number(float64(count.n)))
		}
	}
	fmt.Fprintf(tw, "  CPU of this client\t%s µs/request\n", number(r.ClientCPUMicrosOp))
	_ = tw.Flush()
	r.writeInterrupted(w)
	writeWarnings(w, r.Protocol, r.Warning())
	if r.History != nil {
		fmt.Fprintln(w, r.History)
	}
	if r.KeysLeft != "" {
		fmt.Fprintln(w, r.KeysLeft)
	}
}
