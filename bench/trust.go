package bench

import (
	"fmt"
	"io"
	"math"
)

// Bounds of disturbances of a measurement. Beyond them its figures have a warning.
const (
	// MaxOthersPercent is the share of the machine's CPU time that the host and other processes may use together: on
	// two cores a fifth of one core, which moves a figure by as much as MaxSpread.
	MaxOthersPercent = 10
	// MaxSpread is how far the best round may be above the worst one, as a share of the median. A gain of a fifth is
	// the least for which the log changes its protocol by itself: a wider spread hides it.
	MaxSpread = 0.2
)

// Warning returns the reason why figures of the measurement with these shares are not reliable; "" if they are.
func (s CPUShares) Warning() string {
	if s.OthersPercent+s.StolenPercent <= MaxOthersPercent {
		return ""
	}
	return fmt.Sprintf("other processes used %.0f %% of the CPU during the measurement, and the host took %.0f %%: "+
		"measure on a quiet machine", s.OthersPercent, s.StolenPercent)
}

// spreadWarning returns a warning if rounds differ so much that their median is not reliable; else "".
func spreadWarning(spread [2]float64, median float64) string {
	if median <= 0 || spread[1]-spread[0] <= MaxSpread*median {
		return ""
	}
	return fmt.Sprintf("the rounds differ by %.0f %% of their median: measure more rounds, on a quiet machine",
		100*(spread[1]-spread[0])/median)
}

// writeWarnings writes the warnings about the figures of a contestant.
func writeWarnings(w io.Writer, name string, warnings ...string) {
	for _, text := range warnings {
		if text != "" {
			fmt.Fprintf(w, "WARNING: %s: %s\n", name, text)
		}
	}
}

// measured writes a figure that is 0 only if it was not measured: without samples, or where the kernel or the server
// does not report it.
func measured(v float64) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return "n/a"
	}
	return number(v)
}
