package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	costPages  = 5 // each in a browser of its own
	costRounds = 3
	costPeriod = 30 * time.Second // for each count of pages in a round
)

// measureCost prints how much CPU each member of an idle cluster uses, without pages and with costPages pages of the
// first member open, in alternating periods.
func measureCost(ctx context.Context, out io.Writer, program, work string) error {
	c, err := startCluster(program, filepath.Join(work, "cost"))
	if err != nil {
		return err
	}
	return errors.Join(c.measureCost(ctx, out), c.stop())
}

func (c *cluster) measureCost(ctx context.Context, out io.Writer) error {
	without, with := map[string][]float64{}, map[string][]float64{}
	for range costRounds {
		if err := c.measurePeriod(ctx, 0, without); err != nil {
			return err
		}
		if err := c.measurePeriod(ctx, costPages, with); err != nil {
			return err
		}
	}
	for _, member := range slices.Sorted(maps.Keys(c.urls)) {
		fmt.Fprintf(out, "%s: %.2f %% of a core without pages, %.2f %% with %d pages of m1 open\n",
			member, 100*median(without[member]), 100*median(with[member]), costPages)
	}
	return nil
}

// measurePeriod opens pages of the first member, and appends to used the share of a core that each member uses.
func (c *cluster) measurePeriod(ctx context.Context, pages int, used map[string][]float64) error {
	for range pages {
		p, closePage, err := openPage(ctx, c.urls["m1"]+"/", desk)
		if err != nil {
			return err
		}
		defer closePage()
		if err := p.await(serving(len(c.urls)), 30*time.Second); err != nil {
			return err
		}
	}
	before, err := c.cpuSeconds(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(costPeriod):
	}
	after, err := c.cpuSeconds(ctx)
	if err != nil {
		return err
	}
	for member := range after {
		used[member] = append(used[member], (after[member]-before[member])/time.Since(start).Seconds())
	}
	return nil
}

// cpuSeconds returns the CPU time that each member has used.
func (c *cluster) cpuSeconds(ctx context.Context) (map[string]float64, error) {
	all := map[string]float64{}
	for member, url := range c.urls {
		seconds, err := metric(ctx, url, "process_cpu_seconds_total")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", member, err)
		}
		all[member] = seconds
	}
	return all, nil
}

// metric returns the value of a metric without labels of a member.
func metric(ctx context.Context, url, name string) (float64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, errors.Join(fmt.Errorf("%s/metrics has no %s", url, name), lines.Err())
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
