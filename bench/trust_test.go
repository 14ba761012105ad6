package bench

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWarnings(t *testing.T) {
	require.Empty(t, CPUShares{OthersPercent: 4, StolenPercent: 6}.Warning())
	require.Contains(t, CPUShares{OthersPercent: 70}.Warning(), "other processes used 70 % of the CPU")
	require.Contains(t, CPUShares{OthersPercent: 2, StolenPercent: 11}.Warning(), "the host took 11 %")
	require.Empty(t, spreadWarning([2]float64{90, 110}, 100))
	require.Contains(t, spreadWarning([2]float64{80, 120}, 100), "40 % of their median")
	require.Empty(t, spreadWarning([2]float64{}, 0), "nothing was measured")
}

// TestAContestWarns: a table of figures marks those that are not reliable, and those that were not measured.
func TestAContestWarns(t *testing.T) {
	one := Figures{Protocol: "raft", ThroughputPS: 100, LatencyMS: Latency{P50: 1, P99: 2}, CPUMicrosOp: 3, FsyncsPS: 4,
		DiskBytesOp: 5, LeaderEgress: 6}
	other := Figures{Protocol: "etcd", ThroughputPS: 50, CPUShares: CPUShares{OthersPercent: 70}}
	var out strings.Builder
	both := []Figures{one, other}
	compared := compare(both)
	writeTable(&out, "puts/s", both, [][2]float64{{95, 105}, {40, 60}}, &compared)
	text := out.String()
	require.NotContains(t, text, "WARNING: raft")
	require.Contains(t, text, "WARNING: etcd: other processes used 70 %")
	require.Contains(t, text, "WARNING: etcd: the rounds differ by 40 %")
	require.Contains(t, text, "raft against etcd: throughput × 2.00, p50 × n/a, p99 × n/a, CPU × n/a")
	row := strings.Fields(strings.Split(text, "\n")[2])
	require.Equal(t, []string{"etcd", "50.0", "40.0", "–", "60.0"}, row[:5])
	require.Equal(t, []string{"n/a", "n/a", "n/a", "n/a", "n/a", "n/a"}, row[5:11])
}
