package netspec

import (
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

// TestRegions: the tables are complete, and no way over a third region is much shorter.
func TestRegions(t *testing.T) {
	trips := roundTrips()
	clouds := [][]string{regionsOf(aws), regionsOf(ibm)}
	if n := len(clouds[0]) + len(clouds[1]); n != len(Regions()) || len(clouds[0]) < 15 || len(clouds[1]) < 10 {
		t.Fatalf("%d regions of %d and %d", len(Regions()), len(clouds[0]), len(clouds[1]))
	}
	for _, cloud := range clouds {
		for _, a := range cloud {
			for _, b := range cloud {
				trip, ok := trips[[2]string{a, b}]
				if !ok || trip != trips[[2]string{b, a}] || a != b && (trip < 5*ms || trip > 400*ms) {
					t.Errorf("%s, %s: %v", a, b, trip)
				}
				for _, c := range cloud {
					if over := trips[[2]string{a, c}] + trips[[2]string{c, b}]; a != b && over < trip*6/10 {
						t.Errorf("%s, %s: %v, and over %s %v", a, b, trip, c, over)
					}
				}
			}
		}
	}
}

func regionsOf(table string) (out []string) {
	for line := range strings.Lines(strings.TrimSpace(table)) {
		out = append(out, strings.Fields(line)[0])
	}
	return out
}
