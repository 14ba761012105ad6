package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	_ "github.com/braidlog/braid/internal/sim" // declares the counters
	"github.com/braidlog/braid/internal/sim/count"
)

// summary is the output of braid sim --json for some seeds.
type summary struct {
	Runs    int            `json:"runs"`
	Wanted  int            `json:"wanted"`
	Acked   int            `json:"acknowledged_writes"`
	Elapsed time.Duration  `json:"elapsed_ns"`
	Events  map[string]int `json:"events"`
	Failed  []struct {
		Error  string `json:"error"`
		Replay string `json:"replay"`
	} `json:"failed"`
}

func (s *summary) print(out io.Writer, cluster string) {
	fmt.Fprintf(out, "%s: %d of %d seeds, %d failed, %d writes acknowledged, %s\n",
		cluster, s.Runs, s.Wanted, len(s.Failed), s.Acked, s.Elapsed.Round(time.Second/10))
	for _, f := range s.Failed {
		fmt.Fprintf(out, "  %s\n  replay: %s\n", f.Error, f.Replay)
	}
}

// happened is the value of each counter in the seeds of each kind of cluster.
type happened map[string]map[string]int

func (h happened) add(cluster string, events map[string]int) {
	if h[cluster] == nil {
		h[cluster] = map[string]int{}
	}
	for name, n := range events {
		h[cluster][name] += n
	}
}

// verdict fails if an event that a kind of cluster must cause did not happen: a fault that does not happen is not
// tested.
func (h happened) verdict() error {
	var errs []error
	for _, c := range campaigns {
		for _, k := range count.All() {
			if !slices.Contains(c.brings, k.Needs) {
				continue
			}
			often := c.often
			if least, seldom := seldom[c.cluster+": "+k.Name]; seldom {
				often = least
			}
			if n := h[c.cluster][k.Name]; n <= often {
				errs = append(errs, fmt.Errorf("%s: only %d %s in %d seeds, and not more than %d", c.cluster, n, k.Text,
					c.seeds, often))
			}
		}
	}
	return errors.Join(errs...)
}
