package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/bench/paper"
)

const (
	// curveStart is the first rate of a curve.
	curveStart = 10_000
	// curveDuration is the duration of each rate of a curve.
	curveDuration = 5 * time.Second
)

// several reports whether several rates are to be measured.
func (f *benchLogFlags) several() bool { return f.curve || len(f.rates) > 1 }

// completeRates determines the rates from the flags.
func (f *benchLogFlags) completeRates(given func(string) bool) error {
	f.rates = nil
	if given("rate") {
		for text := range strings.SplitSeq(f.rate, ",") {
			rate, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil || !(rate > 0) {
				return fmt.Errorf("--rate %s: %q must be a positive number of commands a second", f.rate, text)
			}
			f.rates = append(f.rates, rate)
		}
	}
	switch {
	case f.curve && len(f.rates) > 1:
		return fmt.Errorf("--curve finds its rates by itself, from one --rate on: not with --rate %s", f.rate)
	case f.curve && f.config.Load.Proposers > 0:
		return errors.New("--curve and --proposers: proposers form a closed loop, and a curve needs an open one")
	}
	for _, flag := range []string{"max-p99", "out"} {
		if given(flag) && !f.several() {
			return fmt.Errorf("--%s is for several rates: give --curve, or a list to --rate", flag)
		}
	}
	if len(f.rates) > 0 {
		f.config.Load.Rate = f.rates[0]
	}
	if f.curve && !given("duration") {
		f.config.Load.Duration = curveDuration
	}
	return nil
}

// curves returns the configuration of a measurement at several rates.
func (f *benchLogFlags) curves() bench.CurveConfig {
	c := bench.CurveConfig{Contestants: f.contestants(), Rates: f.rates, Rounds: f.rounds, MaxP99: f.maxP99}
	if f.curve {
		c.Rates, c.Start = nil, curveStart
		if len(f.rates) > 0 {
			c.Start = f.rates[0]
		}
	}
	return c
}

// runCurves measures at several rates. stop ends the profile.
func (f *benchLogFlags) runCurves(cmd *cobra.Command, progress *progress, stop func()) error {
	result, err := bench.RunLogCurves(cmd.Context(), f.curves())
	stop()
	progress.clear()
	if result == nil {
		return err
	}
	out := cmd.OutOrStdout()
	if f.json {
		if err := bench.WriteJSON(out, result); err != nil {
			return err
		}
	} else {
		result.WriteText(out)
	}
	if f.out != "" {
		if err := paper.WriteCurves(f.out, result); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	if bad := result.AllViolations(); len(bad) > 0 {
		return fmt.Errorf("a cluster did not keep its promises: %s", strings.Join(bad, "; "))
	}
	return nil
}
