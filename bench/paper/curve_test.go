package paper

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braidlog/braid/bench"
)

func TestWriteCurves(t *testing.T) {
	point := func(protocol string, rate, achieved, p99 float64) *bench.CurvePoint {
		r := &bench.LogResult{RatePS: rate, Rounds: 3}
		r.Protocol, r.ThroughputPS, r.CPUMicrosOp = protocol, achieved, 2
		r.LatencyMS = bench.Latency{P50: p99 / 2, P90: p99 / 1.5, P99: p99, P999: 2 * p99, Max: 3 * p99}
		return &bench.CurvePoint{LogResult: r, Saturated: achieved < rate}
	}
	c := &bench.LogCurves{Series: []*bench.Curve{
		{Protocol: "raft", KeepsUpPS: 20_000, Points: []*bench.CurvePoint{point("raft", 10_000, 10_000, 1),
			point("raft", 20_000, 20_000, 2)}},
		{Protocol: "etcd-raft", SaturatedPS: 10_000, Points: []*bench.CurvePoint{point("etcd-raft", 10_000, 5_000, 400)}},
	}}
	c.LogResult = c.Series[0].Points[1].LogResult
	dir := t.TempDir()
	if err := WriteCurves(dir, c); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"curve.svg", "curve-2.svg"} {
		svg, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		wellFormed(t, name, svg, true)
		if s := string(svg); strings.Count(s, "<circle") != 3+2 ||
			!strings.Contains(s, "etcd-raft, 10,000 commands/s offered: 5,000 requests/s") {
			t.Errorf("%s shows %d dots, legend included: %s", name, strings.Count(s, "<circle"), s)
		}
	}
	table, err := os.Open(filepath.Join(dir, "curve.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = table.Close() }()
	if rows, err := csv.NewReader(table).ReadAll(); err != nil || len(rows) != 1+3*7 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "curve.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got bench.LogCurves
	if err := json.Unmarshal(data, &got); err != nil || len(got.Series) != 2 || got.Series[1].SaturatedPS != 10_000 ||
		got.ThroughputPS != 20_000 {
		t.Errorf("%v: %s", err, data)
	}
}
