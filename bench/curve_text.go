package bench

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// WriteText writes the curves as tables, each with the saturation of its contestant.
func (c *LogCurves) WriteText(w io.Writer) {
	r := c.LogResult
	fmt.Fprintf(w, "%d members, open loop, %d-byte commands, %.1f s at each rate, medians of %d rounds on %d cores, "+
		"%s (%s)\n",
		r.Nodes, r.Payload, r.DurationS, r.Rounds, r.Machine.Cores, r.Machine.Filesystem, r.DataDir)
	for _, s := range c.Series {
		fmt.Fprintf(w, "\n%s\n", s.Protocol)
		s.writeTable(w)
		fmt.Fprintln(w, s.describeSaturation())
	}
	for _, v := range c.AllViolations() {
		fmt.Fprintf(w, "VIOLATION: %s\n", v)
	}
	fmt.Fprintf(w, "\nsaturated: less than %.0f %% of the commands that were due came through, or the p99 was above "+
		"%s ms\n", 100*keptUp, number(c.MaxP99MS))
	c.writeComparison(w)
	if len(c.AllViolations()) == 0 {
		fmt.Fprintln(w, "verified: after every run all members had applied the same commands, each acknowledged one "+
			"exactly once")
	}
	if c.EndedEarly {
		fmt.Fprintln(w, "ended early: these are the rates until then")
	}
}

// writeComparison compares the rates that the contestants keep up with.
func (c *LogCurves) writeComparison(w io.Writer) {
	rivals := slices.DeleteFunc(slices.Clone(c.Series), (*Curve).isLimit)
	for i, s := range rivals {
		if first := rivals[0]; i > 0 && first.KeepsUpPS > 0 && s.KeepsUpPS > 0 {
			fmt.Fprintf(w, "%s keeps up with %.2f times the rate that %s keeps up with\n", first.Protocol,
				first.KeepsUpPS/s.KeepsUpPS, s.Protocol)
		}
		if s.ShareOfLimit > 0 {
			fmt.Fprintf(w, "%s keeps up with %.2f of the rate that the limit keeps up with\n", s.Protocol,
				s.ShareOfLimit)
		}
	}
}

func (s *Curve) writeTable(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "offered/s\tachieved/s\tp50 ms\tp90 ms\tp99 ms\tp99.9 ms\tmax ms\tCPU µs/command\terrors\t"+
		"stolen %\tothers %\tsaturated\t")
	for _, p := range s.Points {
		l, saturated := p.LatencyMS, "–"
		if p.Saturated {
			saturated = "yes"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%.1f\t%.1f\t%s\t\n",
			number(p.RatePS), number(p.ThroughputPS),
			measured(l.P50), measured(l.P90), measured(l.P99), measured(l.P999), measured(l.Max),
			measured(p.CPUMicrosOp), p.Errors, p.StolenPercent, p.OthersPercent, saturated)
	}
	_ = tw.Flush()
	for _, p := range s.Points {
		writeWarnings(w, fmt.Sprintf("%s at %s/s", s.Protocol, number(p.RatePS)), p.Warning(),
			spreadWarning(p.ThroughputSpread, p.ThroughputPS))
	}
}

// describeSaturation describes the saturation of the contestant.
func (s *Curve) describeSaturation() string {
	switch {
	case s.KeepsUpPS == 0:
		return fmt.Sprintf("%s is saturated at every rate, from %s/s on", s.Protocol, number(s.SaturatedPS))
	case s.SaturatedPS == 0:
		return fmt.Sprintf("%s keeps up with every rate, up to %s/s", s.Protocol, number(s.KeepsUpPS))
	}
	return fmt.Sprintf("%s saturates between %s/s, with which it keeps up, and %s/s", s.Protocol, number(s.KeepsUpPS),
		number(s.SaturatedPS))
}

// AllViolations returns the violations that invalidate the figures; empty if they are valid.
func (c *LogCurves) AllViolations() (all []string) {
	for _, s := range c.Series {
		for _, p := range s.Points {
			for _, v := range p.LogResult.Violations {
				all = append(all, fmt.Sprintf("%s at %s/s: %s", s.Protocol, number(p.RatePS), v))
			}
		}
	}
	return all
}
