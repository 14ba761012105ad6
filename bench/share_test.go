package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/bench/workload"
)

// The limit is no rival, at any place among the contestants: ratios leave it out, and shares are of its figures.
func TestSharesOfTheLimit(t *testing.T) {
	raft := Figures{Protocol: "raft", ThroughputPS: 60, CPUMicrosOp: 3, LatencyMS: Latency{P50: 3, P99: 6}}
	lcr := Figures{Protocol: "lcr", ThroughputPS: 30, CPUMicrosOp: 6, LatencyMS: Latency{P50: 6, P99: 6}}
	limit := Figures{Protocol: Limit, ThroughputPS: 100, CPUMicrosOp: 2, LatencyMS: Latency{P50: 2, P99: 4}}
	for at := range 3 {
		figures := []Figures{raft, lcr}
		figures = append(figures[:min(at, 2):2], append([]Figures{limit}, figures[at:]...)...)
		c := compare(figures)
		require.Equal(t, []Ratio{{Protocol: "lcr", Throughput: 2, P50: 2, P99: 1, CPU: 2}}, c.Ratios)
		require.Equal(t, []Share{
			{Protocol: "raft", Throughput: 0.6, P50: 1.5, P99: 1.5, CPU: 1.5},
			{Protocol: "lcr", Throughput: 0.3, P50: 3, P99: 1.5, CPU: 3}}, c.Shares)
		var out strings.Builder
		writeTable(&out, "puts/s", figures, make([][2]float64, len(figures)), &c)
		text := out.String()
		require.Contains(t, text, "raft against lcr: throughput × 2.00")
		require.Contains(t, text, "raft: 0.60 of the limit's throughput; 1.50 times its p50, 1.50 times its p99, "+
			"1.50 times its CPU\n")
		require.Contains(t, text, "lcr: 0.30 of the limit's throughput")
		require.NotContains(t, text, "against limit")
		require.NotContains(t, text, "limit against")
	}
	require.Empty(t, compare([]Figures{raft, lcr}).Shares)
	alone := compare([]Figures{limit})
	require.Empty(t, alone.Ratios)
	require.Empty(t, alone.Shares)
}

// The shares are in the JSON of a contest, and of curves.
func TestSharesInJSON(t *testing.T) {
	shared := Comparison{Shares: []Share{{Protocol: "raft", Throughput: 0.6}}}
	for _, v := range []any{&LogContest{LogResult: &LogResult{}, Comparison: shared},
		&KVContest{KVResult: &KVResult{}, Comparison: shared}} {
		var out bytes.Buffer
		require.NoError(t, WriteJSON(&out, v))
		var got struct {
			Shares []Share `json:"shares_of_limit"`
		}
		require.NoError(t, json.Unmarshal(out.Bytes(), &got))
		require.Equal(t, shared.Shares, got.Shares)
	}
}

func TestCurvesHaveSharesOfTheLimit(t *testing.T) {
	f := &fakeRun{capacity: map[string]float64{"raft": 50_000, Limit: 1e9}}
	c := curveOf("raft", Limit)
	c.Rates = []float64{10_000, 20_000, 40_000, 80_000}
	got, err := c.run(context.Background(), f.run)
	require.NoError(t, err)
	require.InDelta(t, 0.5, got.Series[0].ShareOfLimit, 0)
	require.Zero(t, got.Series[1].ShareOfLimit)
	var out strings.Builder
	got.WriteText(&out)
	require.Contains(t, out.String(), "raft keeps up with 0.50 of the rate that the limit keeps up with")
	require.NotContains(t, out.String(), "times the rate that limit")
}

// Settings of protocols are not for the limit, and those that cannot be emulated for it are refused.
func TestTheLimitHasNoSettings(t *testing.T) {
	all := Settings{NoBatching: true, PipelineDepth: 3, MaxBatchCommands: 1}
	require.Equal(t, Settings{}, all.Of(Limit))
	load := Load{Payload: 16, Inflight: 1, Duration: time.Second}
	c := LogConfig{Protocol: Limit, Nodes: 3, Load: load, Settings: all}
	require.ErrorContains(t, c.Validate(), "limit has no settings")
	c.Settings = Settings{Net: "latency=1ms"}.Of(Limit)
	require.ErrorContains(t, c.Validate(), "not emulated")
	c.Settings = Settings{}
	require.NoError(t, c.Validate())
}

// Servers that store nothing are measured only with loads that they answer.
func TestLoadsForServersThatStoreNothing(t *testing.T) {
	c := KVContestConfig{Contest: Contest{Servers: []string{"raft", Limit}, Nodes: 3, Rounds: 1}, Load: kvLoad()}
	require.NoError(t, c.Validate())
	require.ErrorContains(t, c.ValidateEtcd(), "limit: it stores nothing")
	for _, kind := range []workload.Kind{workload.Scan, workload.ReadModifyWrite, workload.Delete, workload.Grant} {
		mixed := c
		mixed.Load.Workload.Mix, mixed.Load.Workload.ScanLimit = workload.Mix{}, 1
		mixed.Load.Workload.Mix[kind] = 1
		require.ErrorContains(t, mixed.Validate(), "limit: it answers puts, and gets of one key", "%v", kind)
	}
	c.Load.Check, c.Load.CheckLimit = true, time.Second
	require.ErrorContains(t, c.Validate(), "limit: it stores nothing, so there is no history to check")
	c.Servers = []string{"bare-map"}
	require.ErrorContains(t, c.Validate(), "bare-map: it stores nothing")
}
