package bench

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// The phases of a run with watches.
const (
	PhaseAlone   = "no watches"
	PhaseWatched = "watches"
	PhaseStalled = "stalled"
	PhaseCatchUp = "catching up"
)

// WatchPhase are the figures of one phase; [Figures] are those of the puts.
type WatchPhase struct {
	Phase string `json:"phase"`
	Figures
	ThroughputSpread [2]float64 `json:"throughput_spread_per_s"`
	Events           int64      `json:"events"`       // that the watches of the phase received
	EventsPS         float64    `json:"events_per_s"` // during the puts
	// MemoryMB is the resident memory of each server after the puts, before stalled watches are read, in MiB.
	MemoryMB []float64 `json:"memory_mib"`
	// Cancelled counts the watches that were cancelled with a compact revision.
	Cancelled int `json:"cancelled_watches"`
	// CaughtUpS is the time until the last watch from an old revision had received the history.
	CaughtUpS float64 `json:"caught_up_s,omitempty"`
}

// WatchResult is the outcome of the phases on one kind of server.
type WatchResult struct {
	Protocol string        `json:"protocol"`
	Version  string        `json:"version"`
	Nodes    int           `json:"nodes"`
	Phases   []*WatchPhase `json:"phases"`
	// MemoryMB is the resident memory of each server at the end, in MiB.
	MemoryMB   []float64 `json:"memory_mib"`
	Verified   bool      `json:"verified"`
	Violations []string  `json:"violations,omitempty"`
}

// WatchContest is the outcome of a WatchConfig.
type WatchContest struct {
	Watchers int     `json:"watchers"`
	Streams  int     `json:"streams"`
	Stalled  int     `json:"stalled"`
	Prefixes int     `json:"prefixes"`
	Clients  int     `json:"clients"`
	ValSize  int     `json:"val_size"`
	History  int     `json:"history"`
	PutTotal int64   `json:"put_total,omitempty"`
	PutRate  float64 `json:"put_rate,omitempty"`
	serverResults[*WatchResult]
}

func (r *WatchResult) violated() (server string, violations []string) {
	return r.Protocol, r.Violations
}

// newWatchContest returns the result of some runs, nil if there are none.
func newWatchContest(c *WatchConfig, runs [][]*WatchResult) *WatchContest {
	out := &WatchContest{Watchers: c.Watchers, Streams: c.Streams, Prefixes: c.Prefixes, Clients: c.Clients,
		ValSize: c.ValSize, History: c.History, Stalled: c.Stalled, PutTotal: c.PutTotal, PutRate: c.PutRate,
		serverResults: newServerResults(&c.Contest, runs, medianWatchResult)}
	if len(out.Results) == 0 {
		return nil
	}
	return out
}

func medianWatchResult(runs []*WatchResult) *WatchResult {
	m := *runs[0]
	m.Phases, m.Violations = nil, nil
	m.MemoryMB = medianEach(runs, func(r *WatchResult) []float64 { return r.MemoryMB })
	for _, r := range runs {
		m.Violations = append(m.Violations, r.Violations...)
	}
	m.Verified = len(m.Violations) == 0
	for _, name := range []string{PhaseAlone, PhaseWatched, PhaseStalled, PhaseCatchUp} {
		var of []*WatchPhase
		for _, r := range runs {
			for _, p := range r.Phases {
				if p.Phase == name {
					of = append(of, p)
				}
			}
		}
		if len(of) > 0 {
			m.Phases = append(m.Phases, medianPhase(of))
		}
	}
	return &m
}

func medianPhase(of []*WatchPhase) *WatchPhase {
	m := &WatchPhase{Phase: of[0].Phase}
	m.MemoryMB = medianEach(of, func(p *WatchPhase) []float64 { return p.MemoryMB })
	var figures []Figures
	var events, caughtUp []float64
	for _, p := range of {
		figures = append(figures, p.Figures)
		events, caughtUp = append(events, p.EventsPS), append(caughtUp, p.CaughtUpS)
		m.Events += p.Events
		m.Cancelled += p.Cancelled
	}
	m.Figures, m.ThroughputSpread = medianFigures(figures), spread(figures)
	m.EventsPS, m.CaughtUpS = median(events), median(caughtUp)
	return m
}

// medianEach returns the median of each of several figures of some runs.
func medianEach[R any](runs []R, of func(R) []float64) (m []float64) {
	for i := range of(runs[0]) {
		var values []float64
		for _, r := range runs {
			values = append(values, of(r)[i])
		}
		m = append(m, median(values))
	}
	return m
}

// maxViolations is the number of violations in a text.
const maxViolations = 10

// WriteText writes the result as a table.
func (c *WatchContest) WriteText(w io.Writer) {
	fmt.Fprintf(w, "%d members, %d watches on %d streams and %d prefixes (stalled: %d), %d clients with %d-byte "+
		"values, medians of %d rounds on %d cores, %s\n", c.Results[0].Nodes, c.Watchers, c.Streams, c.Prefixes,
		c.Stalled, c.Clients, c.ValSize, c.Rounds, c.Machine.Cores, c.Machine.Filesystem)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "\t\tputs/s\t(spread)\tof alone\tp50 ms\tp99 ms\tevents/s\tcaught up s\tcancelled\terrors\t"+
		"memory MiB\t")
	for _, r := range c.Results {
		for _, p := range r.Phases {
			fmt.Fprintf(tw, "%s\t%s\t%s\t%s – %s\t%.0f %%\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t\n", r.Protocol, p.Phase,
				number(p.ThroughputPS), number(p.ThroughputSpread[0]), number(p.ThroughputSpread[1]),
				100*p.ThroughputPS/r.Phases[0].ThroughputPS, measured(p.LatencyMS.P50), measured(p.LatencyMS.P99),
				measured(p.EventsPS), measured(p.CaughtUpS), p.Cancelled, p.Errors, measured(slices.Max(p.MemoryMB)))
		}
	}
	_ = tw.Flush()
	for _, r := range c.Results {
		for _, p := range r.Phases {
			writeWarnings(w, r.Protocol+", "+p.Phase, p.Warning(), spreadWarning(p.ThroughputSpread, p.ThroughputPS))
		}
		writeMemory(w, r.Protocol, r.MemoryMB)
		writeVerified(w, r.Protocol, "each watch received exactly the events of its keys, in order", r.Violations)
	}
}

// writeMemory writes the resident memory of the servers.
func writeMemory(w io.Writer, protocol string, mb []float64) {
	fmt.Fprintf(w, "%s: memory of the servers at the end, MiB:", protocol)
	for _, m := range mb {
		fmt.Fprintf(w, " %s", measured(m))
	}
	fmt.Fprintln(w)
}

// writeVerified writes the promise that was kept, or the first violations of it.
func writeVerified(w io.Writer, protocol, promise string, violations []string) {
	if len(violations) == 0 {
		fmt.Fprintf(w, "%s: verified: %s\n", protocol, promise)
		return
	}
	for i, v := range violations {
		if i == maxViolations {
			fmt.Fprintf(w, "%s: and %d more\n", protocol, len(violations)-i)
			break
		}
		fmt.Fprintf(w, "%s: VIOLATION: %s\n", protocol, v)
	}
}
