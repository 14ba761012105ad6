package bench

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// What a switch should not exceed: a pause, or one in round trips where links are emulated.
const (
	aimPause      = 100 * time.Millisecond
	aimRoundTrips = 5
)

// SwitchPair are the figures of one switch.
type SwitchPair struct {
	From string    `json:"from"`
	To   string    `json:"to"`
	At   time.Time `json:"at"` // when the command began
	// PauseMS is the longest time around the switch without an answered put, by any client; SteadyPauseMS the longest
	// in the time of BeforePS.
	PauseMS         float64 `json:"pause_ms"`
	PauseRoundTrips float64 `json:"pause_round_trips,omitempty"` // between the farthest members, if links are emulated
	SteadyPauseMS   float64 `json:"steady_pause_ms"`
	SlowestPutMS    float64 `json:"slowest_put_ms"` // around the switch
	SwitchMS        float64 `json:"switch_ms"`      // until the command was answered
	// Puts a second: before and after the switch, and of a cluster that began with the protocol.
	BeforePS float64 `json:"before_per_s"`
	AfterPS  float64 `json:"after_per_s,omitempty"`
	BornPS   float64 `json:"born_per_s,omitempty"`
	// AfterOfBorn is AfterPS divided by BornPS.
	AfterOfBorn float64 `json:"after_of_born,omitempty"`
	// Retried are requests around the switch that failed because there was no leader or no answer, Errors all others
	// that failed.
	Retried     int    `json:"retried"`
	Errors      int    `json:"errors"`
	ErrorSample string `json:"error_sample,omitempty"`
	Failed      string `json:"failed,omitempty"` // why the switch was not made
}

// SwitchResult is the outcome of a SwitchConfig.
type SwitchResult struct {
	Nodes        int          `json:"nodes"`
	Net          string       `json:"net,omitempty"`
	RoundTripMS  float64      `json:"round_trip_ms,omitempty"`
	Clients      int          `json:"clients"`
	ValSize      int          `json:"val_size"`
	LargeSize    int          `json:"large_size,omitempty"`
	LargeShare   float64      `json:"large_share,omitempty"`
	Transactions float64      `json:"transactions"`
	Reads        float64      `json:"reads"`
	Keys         int          `json:"keys"`
	ThrottlePS   float64      `json:"throttle_per_s,omitempty"`
	WindowS      float64      `json:"window_s"`
	Clusters     int          `json:"clusters"` // that were started, without those for BornPS
	Pairs        []SwitchPair `json:"pairs"`
	// The median and the longest of the pauses, and how many switches kept the aim.
	MedianPauseMS  float64     `json:"median_pause_ms"`
	LongestPauseMS float64     `json:"longest_pause_ms"`
	AimMS          float64     `json:"aim_ms"`
	WithinAim      int         `json:"within_aim"`
	FailedSwitches int         `json:"failed_switches"`
	CPUShares                  // of all runs together
	Histories      []*Verdict  `json:"histories"` // of each cluster
	Violations     []string    `json:"violations,omitempty"`
	Verified       bool        `json:"verified"`
	Machine        MachineInfo `json:"machine"`
	Date           time.Time   `json:"date"`
}

func newSwitchResult(c *SwitchConfig) *SwitchResult {
	return &SwitchResult{Nodes: c.Nodes, Net: c.Net, Clients: c.Clients, ValSize: c.ValSize, LargeSize: c.LargeSize,
		LargeShare: c.LargeShare, Transactions: c.Transactions, Reads: c.Reads, Keys: c.Keys, ThrottlePS: c.Throttle,
		WindowS: c.Window.Seconds(), Machine: DescribeMachine(c.Dir), Date: time.Now().UTC().Truncate(time.Second)}
}

// finish sums up the switches, and lists them in the order of wanted.
func (r *SwitchResult) finish(wanted []switchStep) {
	slices.SortStableFunc(r.Pairs, func(a, b SwitchPair) int {
		place := func(p SwitchPair) int { return slices.Index(wanted, switchStep{From: p.From, To: p.To}) }
		return cmp.Compare(place(a), place(b))
	})
	r.AimMS = ms(aimPause)
	if r.RoundTripMS > 0 {
		r.AimMS = aimRoundTrips * r.RoundTripMS
	}
	var pauses []float64
	for i := range r.Pairs {
		p := &r.Pairs[i]
		if p.Failed != "" {
			r.FailedSwitches++
			continue
		}
		pauses = append(pauses, p.PauseMS)
		r.LongestPauseMS = max(r.LongestPauseMS, p.PauseMS)
		if p.PauseMS <= r.AimMS {
			r.WithinAim++
		}
	}
	if len(pauses) > 0 {
		r.MedianPauseMS = median(pauses)
	}
	r.Verified = len(r.Violations) == 0 && len(r.Histories) > 0
}

// String returns the figures as one line.
func (p *SwitchPair) String() string {
	if p.Failed != "" {
		return fmt.Sprintf("%s to %s failed: %s", p.From, p.To, p.Failed)
	}
	s := fmt.Sprintf("%s to %s: pause %s ms, command %s ms, %s then %s puts/s", p.From, p.To, number(p.PauseMS),
		number(p.SwitchMS), number(p.BeforePS), number(p.AfterPS))
	if p.Errors > 0 {
		s += fmt.Sprintf(", %d errors: %s", p.Errors, p.ErrorSample)
	}
	return s
}

// WriteText writes the result as a table.
func (r *SwitchResult) WriteText(w io.Writer) {
	fmt.Fprintf(w, "%d members, links %s, %d clients, %d-byte values, %d keys, %g %% transactions, %g %% reads, "+
		"%g s each on %d cores, %s\n", r.Nodes, cmp.Or(r.Net, "not emulated"), r.Clients, r.ValSize, r.Keys,
		100*r.Transactions, 100*r.Reads, r.WindowS, r.Machine.Cores, r.Machine.Filesystem)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := "from\tto\tpause ms\t"
	if r.RoundTripMS > 0 {
		head += "round trips\t"
	}
	fmt.Fprintln(tw, head+"pause before\tslowest put\tswitch ms\tbefore/s\tafter/s\tborn/s\tafter/born\t"+
		"retried\terrors\t")
	for i := range r.Pairs {
		r.Pairs[i].row(tw, r.RoundTripMS > 0)
	}
	_ = tw.Flush()
	for i := range r.Pairs {
		if p := &r.Pairs[i]; p.Failed != "" || p.Errors > 0 {
			fmt.Fprintln(w, p)
		}
	}
	made := len(r.Pairs) - r.FailedSwitches
	fmt.Fprintf(w, "pauses of %d switches: median %s ms, longest %s ms; %d within %s ms\n", made,
		number(r.MedianPauseMS),
		number(r.LongestPauseMS), r.WithinAim, number(r.AimMS))
	writeWarnings(w, "all switches", r.Warning())
	for _, v := range r.Histories {
		fmt.Fprintln(w, v)
	}
	for _, v := range r.Violations {
		fmt.Fprintln(w, v)
	}
}

func (p *SwitchPair) row(w io.Writer, roundTrips bool) {
	fmt.Fprintf(w, "%s\t%s\t", p.From, p.To)
	figures := []float64{p.PauseMS, p.SteadyPauseMS, p.SlowestPutMS, p.SwitchMS, p.BeforePS, p.AfterPS, p.BornPS,
		p.AfterOfBorn}
	for i, f := range figures {
		switch {
		case p.Failed != "" && i != 3 && i != 4, f == 0 && i >= 6:
			fmt.Fprint(w, "-\t")
		default:
			fmt.Fprintf(w, "%s\t", number(f))
		}
		if i == 0 && roundTrips {
			fmt.Fprintf(w, "%.1f\t", p.PauseRoundTrips)
		}
	}
	fmt.Fprintf(w, "%d\t%d\t\n", p.Retried, p.Errors)
}
