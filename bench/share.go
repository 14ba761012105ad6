package bench

import (
	"fmt"
	"io"
	"slices"
)

// Comparison are the figures of some contestants in relation to each other.
type Comparison struct {
	Ratios []Ratio `json:"ratios"`
	// Shares are those of all contestants but [Limit]; none if the limit was not measured.
	Shares []Share `json:"shares_of_limit,omitempty"`
}

// Ratio compares the first contestant with another: above 1 the first is better. [Limit] is neither of the two.
type Ratio struct {
	Protocol   string  `json:"protocol"` // the other
	Throughput float64 `json:"throughput"`
	P50        float64 `json:"p50"`
	P99        float64 `json:"p99"`
	CPU        float64 `json:"cpu"`
}

// Share has a contestant's figures divided by those of [Limit]. The best value of each is 1: the throughput is below
// it, latencies and the CPU time are above it.
type Share struct {
	Protocol   string  `json:"protocol"`
	Throughput float64 `json:"throughput"`
	P50        float64 `json:"p50"`
	P99        float64 `json:"p99"`
	CPU        float64 `json:"cpu"`
}

// compare compares the contestants with the first one, and each with the limit.
func compare(figures []Figures) Comparison {
	c := Comparison{Ratios: ratios(contestantsOf(figures))}
	if at := slices.IndexFunc(figures, isLimit); at >= 0 {
		c.Shares = shares(figures, figures[at])
	}
	return c
}

func isLimit(f Figures) bool { return f.Protocol == Limit }

// contestantsOf returns the figures without those of the limit.
func contestantsOf(figures []Figures) []Figures {
	return slices.DeleteFunc(slices.Clone(figures), isLimit)
}

// quotient returns a / b, and 0 if b is 0.
func quotient(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// ratios compares the first with each of the others.
func ratios(f []Figures) []Ratio {
	var rs []Ratio
	for i := 1; i < len(f); i++ {
		rs = append(rs, Ratio{
			Protocol:   f[i].Protocol,
			Throughput: quotient(f[0].ThroughputPS, f[i].ThroughputPS),
			P50:        quotient(f[i].LatencyMS.P50, f[0].LatencyMS.P50),
			P99:        quotient(f[i].LatencyMS.P99, f[0].LatencyMS.P99),
			CPU:        quotient(f[i].CPUMicrosOp, f[0].CPUMicrosOp),
		})
	}
	return rs
}

// shares returns the shares of all contestants.
func shares(figures []Figures, of Figures) (all []Share) {
	for _, f := range contestantsOf(figures) {
		all = append(all, Share{
			Protocol:   f.Protocol,
			Throughput: quotient(f.ThroughputPS, of.ThroughputPS),
			P50:        quotient(f.LatencyMS.P50, of.LatencyMS.P50),
			P99:        quotient(f.LatencyMS.P99, of.LatencyMS.P99),
			CPU:        quotient(f.CPUMicrosOp, of.CPUMicrosOp),
		})
	}
	return all
}

// writeText writes a line for each ratio and each share. first is the contestant that the ratios compare.
func (c *Comparison) writeText(w io.Writer, first string) {
	for _, r := range c.Ratios {
		fmt.Fprintf(w, "%s against %s: throughput × %s, p50 × %s, p99 × %s, CPU × %s (above 1: %[1]s is better)\n",
			first, r.Protocol, measured(r.Throughput), measured(r.P50), measured(r.P99), measured(r.CPU))
	}
	for _, s := range c.Shares {
		fmt.Fprintf(w, "%s: %s of the limit's throughput; %s times its p50, %s times its p99, %s times its CPU\n",
			s.Protocol, measured(s.Throughput), measured(s.P50), measured(s.P99), measured(s.CPU))
	}
}
