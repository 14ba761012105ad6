package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"text/tabwriter"
)

// write prints a line for each figure of each benchmark.
func write(out io.Writer, all []*result) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "package\tbenchmark\tunit\tbefore\tafter\tchange")
	for _, r := range all {
		for _, unit := range units {
			before, after := r.of[sideBefore][unit], r.of[sideAfter][unit]
			if len(before)+len(after) == 0 {
				continue
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n",
				r.folder, r.name, unit, number(before), number(after), change(before, after))
		}
	}
	return w.Flush()
}

// median is that of some values, the lower one of two.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)/2]
}

// number prints the median of some values with three digits, and those of an integer; "-": there is none.
func number(values []float64) string {
	if len(values) == 0 {
		return "-"
	}
	v := median(values)
	if v == math.Trunc(v) || v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// change is the change of the median, in percent.
func change(before, after []float64) string {
	switch {
	case len(before) == 0:
		return "new"
	case len(after) == 0:
		return "gone"
	}
	from, to := median(before), median(after)
	switch {
	case from == to:
		return "="
	case from == 0:
		return "was 0"
	}
	return fmt.Sprintf("%+.0f %%", 100*(to-from)/from)
}
