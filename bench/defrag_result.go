package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// DefragPuts are the puts of a phase.
type DefragPuts struct {
	// LongestMS is the longest time between two acknowledged puts of the client of the member that defragments;
	// OthersMS is that of the clients of other members.
	LongestMS float64 `json:"longest_pause_ms"`
	OthersMS  float64 `json:"longest_pause_of_others_ms"`
	Puts      float64 `json:"puts"`
	Errors    int     `json:"errors"`
}

// DefragResult is the outcome of one kind of server.
type DefragResult struct {
	Protocol   string     `json:"protocol"`
	Version    string     `json:"version"`
	Nodes      int        `json:"nodes"`
	InUseMiB   float64    `json:"in_use_mib"`
	BeforeMiB  float64    `json:"before_mib"` // size of the database
	AfterMiB   float64    `json:"after_mib"`
	DefragS    float64    `json:"defrag_s"`
	Alone      DefragPuts `json:"alone"`
	During     DefragPuts `json:"during"`
	CPUShares             // of the whole run
	Violations []string   `json:"violations,omitempty"`
}

// newDefragPuts returns the figures of the clients; the first is the client of the member that defragments.
func newDefragPuts(clients []*putter) (p DefragPuts) {
	for i, c := range clients {
		if i == 0 {
			p.LongestMS = ms(c.longest)
		} else {
			p.OthersMS = max(p.OthersMS, ms(c.longest))
		}
		p.Puts, p.Errors = p.Puts+float64(c.puts), p.Errors+c.errors
	}
	return p
}

// figures are the figures whose median counts.
func (r *DefragResult) figures() []*float64 {
	return []*float64{&r.InUseMiB, &r.BeforeMiB, &r.AfterMiB, &r.DefragS,
		&r.Alone.LongestMS, &r.Alone.OthersMS, &r.Alone.Puts,
		&r.During.LongestMS, &r.During.OthersMS, &r.During.Puts, &r.StolenPercent, &r.OthersPercent}
}

func (r *DefragResult) violated() (server string, violations []string) {
	return r.Protocol, r.Violations
}

// DefragContest is the outcome of a DefragConfig.
type DefragContest struct {
	ValSize int `json:"val_size"`
	serverResults[*DefragResult]
}

// newDefragContest returns the result of some runs, nil if there are none.
func newDefragContest(c *DefragConfig, runs [][]*DefragResult) *DefragContest {
	out := &DefragContest{ValSize: c.ValSize, serverResults: newServerResults(&c.Contest, runs, medianDefragResult)}
	if len(out.Results) == 0 {
		return nil
	}
	return out
}

func medianDefragResult(runs []*DefragResult) *DefragResult {
	m := *runs[0]
	m.Violations = nil
	setMedians(&m, runs, (*DefragResult).figures)
	m.Alone.Errors, m.During.Errors = 0, 0
	for _, r := range runs {
		m.Alone.Errors += r.Alone.Errors
		m.During.Errors += r.During.Errors
		m.Violations = append(m.Violations, r.Violations...)
	}
	return &m
}

// WriteText writes the result as a table.
func (c *DefragContest) WriteText(w io.Writer) {
	fmt.Fprintf(w, "%d members, a client each, %d-byte values, medians of %d rounds on %d cores, %s\n",
		c.Results[0].Nodes, c.ValSize, c.Rounds, c.Machine.Cores, c.Machine.Filesystem)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "\tMiB in use\tbefore\tafter\tdefrag s\tlongest pause ms\t(alone)\tof others\t(alone)\tputs\t"+
		"errors\t")
	for _, r := range c.Results {
		fmt.Fprintf(tw, "%s\t", r.Protocol)
		for _, v := range []float64{r.InUseMiB, r.BeforeMiB, r.AfterMiB, r.DefragS, r.During.LongestMS,
			r.Alone.LongestMS, r.During.OthersMS, r.Alone.OthersMS, r.During.Puts} {
			fmt.Fprintf(tw, "%s\t", number(v))
		}
		fmt.Fprintf(tw, "%d\t\n", r.During.Errors)
	}
	_ = tw.Flush()
	for _, r := range c.Results {
		writeWarnings(w, r.Protocol, r.Warning())
		writeVerified(w, r.Protocol, "each member has the last acknowledged put of each client", r.Violations)
	}
}
