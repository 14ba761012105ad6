package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/spf13/pflag"

	"github.com/braidlog/braid/internal/sim"
	"github.com/braidlog/braid/internal/sim/diagram"
)

// registerTrace adds the flags of traces.
func (f *simFlags) registerTrace(fl *pflag.FlagSet) {
	fl.BoolVar(&f.trace, "trace", false, "print a trace; one seed only")
	fl.StringVar(&f.filter, "trace-filter", "", "of a trace print the lines that match this regular expression, and "+
		"violations")
	fl.BoolVar(&f.diagram, "trace-diagram", false, "draw the trace as a sequence diagram, with a column for each "+
		"member and an arrow for each message; --trace-filter selects rows")
}

// checkTrace checks the flags of a trace.
func (f *simFlags) checkTrace() error {
	if f.filter != "" && !f.trace {
		return usagef("--trace-filter needs --trace")
	}
	if f.diagram && !f.trace {
		return usagef("--trace-diagram needs --trace")
	}
	if _, err := regexp.Compile(f.filter); err != nil {
		return usagef("--trace-filter: %w", err)
	}
	return nil
}

// lineFilter passes on the lines of a trace that match, and violations.
type lineFilter struct {
	to   io.Writer
	want *regexp.Regexp
	part []byte // of a line that has not ended
}

func (f *lineFilter) Write(b []byte) (int, error) {
	f.part = append(f.part, b...)
	for {
		end := bytes.IndexByte(f.part, '\n')
		if end < 0 {
			return len(b), nil
		}
		line := f.part[:end+1]
		if f.want.Match(line[:end]) || bytes.Contains(line, []byte("VIOLATION")) {
			if _, err := f.to.Write(line); err != nil {
				return 0, err
			}
		}
		f.part = f.part[end+1:]
	}
}

// traceTo returns a writer for the lines of a trace, which are printed to w, and a function to call after the last one.
func (f *simFlags) traceTo(w io.Writer) (trace io.Writer, end func() error) {
	want := regexp.MustCompile(f.filter) // run has validated it
	if f.diagram {
		d := &diagram.Diagram{Keep: want.MatchString}
		return d, func() error { return d.Draw(w) }
	}
	end = func() error { return nil }
	if f.filter != "" {
		return &lineFilter{to: w, want: want}, end
	}
	return w, end
}

// traceOne prints the trace of one seed.
func (f *simFlags) traceOne(out io.Writer) error {
	if f.campaign.First != f.campaign.Last {
		return usagef("--trace prints one seed; --seeds %s is %d", f.seeds, f.campaign.Last-f.campaign.First+1)
	}
	w := bufio.NewWriterSize(out, 1<<20)
	o := f.campaign.Options(f.campaign.First)
	trace, end := f.traceTo(w)
	o.Trace = trace
	res := sim.Run(o)
	err := end()
	fmt.Fprintf(w, "%d steps, %d messages, %s simulated, %d operations, %d writes acknowledged, hash %016x\n",
		res.Steps, res.Messages, res.Virtual.Round(time.Millisecond), res.Operations, res.Acked, res.Hash)
	if err := cmp.Or(err, w.Flush()); err != nil {
		return err
	}
	if res.Violation != nil {
		return fmt.Errorf("violation: %w", res.Violation)
	}
	return nil
}
