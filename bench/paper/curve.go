package paper

import (
	"cmp"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/braidlog/braid/bench"
)

// Figures of curves that experiments do not have.
const (
	p999       Metric = "latency_p999_ms"
	maxLatency Metric = "latency_max_ms"
)

// WriteCurves draws throughput–latency curves into a directory: curve.svg (the 99th
// percentile) and curve-2.svg (the median) over the throughput, curve.csv, and curve.json,
// which is what the command prints with --json.
func WriteCurves(dir string, c *bench.LogCurves) error {
	r := &Result{Experiment: "curve", e: &Experiment{Name: "curve", XName: "commands/s offered"}}
	r.Machine.MachineInfo, r.Machine.Date = c.Machine, time.Now().UTC().Truncate(time.Second)
	for _, s := range c.Series {
		r.e.Cases = append(r.e.Cases, Case{Series: s.Protocol})
		series := Series{Name: s.Protocol, X: r.e.XName}
		for _, p := range s.Points {
			series.Points = append(series.Points, curvePoint(p))
		}
		r.Series = append(r.Series, series)
	}
	for _, y := range []Metric{P99, P50} {
		r.e.Plots = append(r.e.Plots, Plot{
			Kind: Tradeoff, Title: "Throughput and " + strings.TrimSuffix(y.label(), ", ms") + ", up to saturation",
			X: Throughput, Y: y, LogX: true, LogY: true, Part: r.e.XName, Bare: true,
		})
	}
	if err := r.write(dir); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "curve.json"), func(w io.Writer) error { return bench.WriteJSON(w, c) })
}

// curvePoint converts a point of a curve to that of an experiment.
func curvePoint(p *bench.CurvePoint) Point {
	l := p.LatencyMS
	pt := Point{X: p.RatePS, Count: cmp.Or(p.Rounds, 1), Figures: map[Metric]Figure{}}
	for m, v := range map[Metric]float64{
		Throughput: p.ThroughputPS, P50: l.P50, P90: l.P90, P99: l.P99, p999: l.P999, maxLatency: l.Max, CPU: p.CPUMicrosOp,
	} {
		pt.Figures[m] = figureOf([]float64{v})
	}
	return pt
}
