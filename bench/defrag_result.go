package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// DefragPuts are the puts of a phase.
type DefragPuts struct {
	// LongestMS is the longest time between two acknowledged puts of the client of the member that defragments, and
	// OthersMS of the clients of other members.
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
	Violations []string   `json:"violations,omitempty"`
}

// take adds the figures of the clients, of which the first is that of the member that defragments.
func (r *DefragResult) take(alone, during []*putter) {
	of := func(all []*putter) (p DefragPuts) {
		for i, c := range all {
			ms := float64(c.longest.Microseconds()) / 1000
			if i == 0 {
				p.LongestMS = ms
			} else {
				p.OthersMS = max(p.OthersMS, ms)
			}
			p.Puts, p.Errors = p.Puts+float64(c.puts), p.Errors+c.errors
		}
		return p
	}
	r.Alone, r.During = of(alone), of(during)
}

// DefragContest is the outcome of a DefragConfig.
type DefragContest struct {
	ValSize int               `json:"val_size"`
	Rounds  int               `json:"rounds"`
	Results []*DefragResult   `json:"results"` // medians over the rounds
	Runs    [][]*DefragResult `json:"runs"`    // by server
	Machine MachineInfo       `json:"machine"`
	Date    time.Time         `json:"date"`
}

// newDefragContest returns the result of some runs, nil if there are none.
func newDefragContest(c *DefragConfig, runs [][]*DefragResult) *DefragContest {
	out := &DefragContest{ValSize: c.ValSize, Rounds: c.Rounds, Machine: DescribeMachine(c.Dir),
		Date: time.Now().UTC().Truncate(time.Second)}
	for _, of := range runs {
		if len(of) > 0 {
			out.Runs, out.Results = append(out.Runs, of), append(out.Results, medianDefragResult(of))
		}
	}
	if len(out.Results) == 0 {
		return nil
	}
	return out
}

func medianDefragResult(runs []*DefragResult) *DefragResult {
	m := *runs[0]
	m.Violations = nil
	figures := medianEach(runs, func(r *DefragResult) []float64 {
		return []float64{r.InUseMiB, r.BeforeMiB, r.AfterMiB, r.DefragS, r.Alone.LongestMS, r.Alone.OthersMS, r.Alone.Puts,
			r.During.LongestMS, r.During.OthersMS, r.During.Puts}
	})
	for i, f := range []*float64{&m.InUseMiB, &m.BeforeMiB, &m.AfterMiB, &m.DefragS, &m.Alone.LongestMS,
		&m.Alone.OthersMS, &m.Alone.Puts, &m.During.LongestMS, &m.During.OthersMS, &m.During.Puts} {
		*f = figures[i]
	}
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
		for _, v := range []float64{r.InUseMiB, r.BeforeMiB, r.AfterMiB, r.DefragS, r.During.LongestMS, r.Alone.LongestMS,
			r.During.OthersMS, r.Alone.OthersMS, r.During.Puts} {
			fmt.Fprintf(tw, "%s\t", number(v))
		}
		fmt.Fprintf(tw, "%d\t\n", r.During.Errors)
	}
	_ = tw.Flush()
	for _, r := range c.Results {
		writeVerified(w, r.Protocol, "each member has the last acknowledged put of each client", r.Violations)
	}
}

// Violation returns the first violation with its server, "" if there is none.
func (c *DefragContest) Violation() string {
	for _, r := range c.Results {
		if len(r.Violations) > 0 {
			return r.Protocol + ": " + r.Violations[0]
		}
	}
	return ""
}
