package netspec

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// rateUnits are in bits per second. Longer suffixes come before those that end them.
var rateUnits = []struct {
	name string
	bits float64
}{
	{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1},
	{"gb/s", 8e9}, {"mb/s", 8e6}, {"kb/s", 8e3}, {"b/s", 8},
}

func parseRate(s string) (int64, error) {
	lower := strings.ToLower(strings.TrimSuffix(s, "ps"))
	for _, u := range rateUnits {
		number, ok := strings.CutSuffix(lower, u.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(v > 0) || v*u.bits > math.MaxInt64/2 {
			return 0, fmt.Errorf("%q is not a rate above 0", s)
		}
		return int64(math.Round(v * u.bits)), nil
	}
	return 0, fmt.Errorf("%q lacks a unit: bit, kbit, mbit, gbit, B/s, kB/s, MB/s or GB/s", s)
}

func formatRate(bits int64) string {
	u := rateUnits[:4]
	for bits%int64(u[0].bits) != 0 { // ends at the bit
		u = u[1:]
	}
	return strconv.FormatInt(bits/int64(u[0].bits), 10) + u[0].name
}
