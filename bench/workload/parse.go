package workload

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// pair is one name=value; a value alone has an empty name.
type pair struct{ name, value string }

// pairs splits "a=1,b=2".
func pairs(text string) []pair {
	if text == "" {
		return nil
	}
	var out []pair
	for part := range strings.SplitSeq(text, ",") {
		name, value, named := strings.Cut(strings.TrimSpace(part), "=")
		if !named {
			name, value = "", name
		}
		out = append(out, pair{strings.TrimSpace(name), strings.TrimSpace(value)})
	}
	return out
}

// number parses a finite number, which may be a percentage.
func number(text string) (float64, error) {
	digits, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	if percent {
		v /= 100
	}
	return v, nil
}

// unit is a suffix of a size; longer ones come before their own suffixes.
type unit struct {
	suffix string
	bytes  int
}

var units = []unit{{"MiB", 1 << 20}, {"KiB", 1 << 10}, {"M", 1 << 20}, {"K", 1 << 10}, {"B", 1}, {"", 1}}

// bytes parses a size such as 16, 4KiB or 1MiB.
func bytes(text string) (int, error) {
	text = strings.TrimSpace(text)
	i := slices.IndexFunc(units, func(u unit) bool { return strings.HasSuffix(text, u.suffix) })
	v, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(text, units[i].suffix)))
	if err != nil || v > math.MaxInt32 || v < math.MinInt32 {
		return 0, fmt.Errorf("size %q: must be a number of bytes, KiB or MiB", text)
	}
	return v * units[i].bytes, nil
}

// formatBytes formats a size so that bytes parses it.
func formatBytes(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", n>>10)
	}
	return strconv.Itoa(n)
}
