package bench

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
)

// LogContest is the outcome of several contestants on the same load.
type LogContest struct {
	// LogResult is the first contestant's: in JSON a contest has the fields of a single run.
	*LogResult
	// Results are the medians over the rounds, in the order of the contestants.
	Results []*LogResult `json:"results"`
	Comparison
	Runs [][]*LogResult `json:"runs"` // by contestant
}

// RunLogContest runs contestants in rounds. Each round starts with the next contestant, so that changes on the
// machine affect all of them equally. When ctx ends, or a run fails, the result is of the runs before (nil if there
// are none), and so is the error.
func RunLogContest(ctx context.Context, contestants []LogConfig, rounds int) (*LogContest, error) {
	for i := range contestants {
		if err := contestants[i].Validate(); err != nil {
			return nil, err
		}
	}
	runs, err := Alternate(ctx, len(contestants), rounds, func(ctx context.Context, i int) (*LogResult, error) {
		return RunLog(ctx, contestants[i])
	})
	c := &LogContest{}
	c.Runs, c.Results = medians(runs, medianLogResult)
	var figures []Figures
	for _, r := range c.Results {
		figures = append(figures, r.Figures)
	}
	c.Comparison = compare(figures)
	if len(c.Results) == 0 {
		return nil, err
	}
	c.LogResult = c.Results[0]
	return c, err
}

// Alternate runs n contestants in rounds and returns their results by contestant.
func Alternate[T any](ctx context.Context, n, rounds int, run func(context.Context, int) (T, error)) ([][]T, error) {
	results := make([][]T, n)
	for round := range rounds {
		for k := range n {
			i := (round + k) % n
			if ctx.Err() != nil {
				return results, ctx.Err()
			}
			r, err := run(ctx, i)
			if err != nil {
				return results, err
			}
			results[i] = append(results[i], r)
		}
	}
	return results, nil
}

// medians returns the contestants that have runs, and the median of each.
func medians[R any](runs [][]R, median func([]R) R) (of [][]R, results []R) {
	for _, r := range runs {
		if len(r) > 0 {
			of, results = append(of, r), append(results, median(r))
		}
	}
	return of, results
}

func medianLogResult(runs []*LogResult) *LogResult {
	m := *runs[0]
	var figures []Figures
	m.Violations, m.Verified, m.Refused, m.LatencySamples = nil, true, 0, 0
	for _, r := range runs {
		figures = append(figures, r.Figures)
		m.Violations = append(m.Violations, r.Violations...)
		m.Verified = m.Verified && r.Verified
		m.Refused += r.Refused
		m.LatencySamples += r.LatencySamples
	}
	m.Figures, m.Idle = medianFigures(figures), medianIdle(runs)
	m.Rounds, m.ThroughputSpread = len(runs), spread(figures)
	return &m
}

// WriteText writes the contest as a table.
func (c *LogContest) WriteText(w io.Writer) {
	if c.Idle != nil {
		writeIdle(w, c.Results)
		return
	}
	r := c.Results[0]
	fmt.Fprintf(w, "%d members, %s, %d-byte commands, %.1f s, medians of %d rounds on %d cores, %s (%s)\n",
		r.Nodes, r.describeLoad(), r.Payload, r.DurationS, r.Rounds, r.Machine.Cores, r.Machine.Filesystem, r.DataDir)
	var figures []Figures
	var spreads [][2]float64
	for _, r := range c.Results {
		figures, spreads = append(figures, r.Figures), append(spreads, r.ThroughputSpread)
	}
	writeTable(w, "commands/s", figures, spreads, &c.Comparison)
	for _, r := range c.Results {
		if r.Verified {
			fmt.Fprintf(w, "%s: verified: all members applied the same commands, each acknowledged one exactly once\n",
				r.Protocol)
		}
		for _, v := range r.Violations {
			fmt.Fprintf(w, "%s: VIOLATION: %s\n", r.Protocol, v)
		}
	}
}

// writeTable writes one line for each contestant, and how they compare.
func writeTable(w io.Writer, unit string, figures []Figures, spreads [][2]float64, c *Comparison) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "\t%s\t(spread)\tp50 ms\tp99 ms\tCPU µs/op\tegress B/op\tdisk B/op\tfsyncs/s\terrors\tstolen "+
		"%%\tothers %%\t\n", unit)
	interrupted := Figures{}
	for i, f := range figures {
		interrupted.Interrupted = interrupted.Interrupted || f.Interrupted
		fmt.Fprintf(tw, "%s\t%s\t%s – %s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%.1f\t%.1f\t\n", f.Protocol,
			number(f.ThroughputPS), number(spreads[i][0]), number(spreads[i][1]), measured(f.LatencyMS.P50),
			measured(f.LatencyMS.P99), measured(f.CPUMicrosOp), measured(f.LeaderEgress), measured(f.DiskBytesOp),
			measured(f.FsyncsPS), f.Errors, f.StolenPercent, f.OthersPercent)
	}
	_ = tw.Flush()
	interrupted.writeInterrupted(w)
	if rivals := contestantsOf(figures); len(rivals) > 0 {
		c.writeText(w, rivals[0].Protocol)
	}
	for i, f := range figures {
		writeWarnings(w, f.Protocol, f.Warning(), spreadWarning(spreads[i], f.ThroughputPS))
	}
}
