package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/settings"
	"github.com/braidlog/braid/internal/sim"
)

// simFlags are the flags of braid sim.
type simFlags struct {
	campaign     sim.Campaign
	seeds        string
	trace        bool
	diagram      bool
	filter       string
	json         bool
	shrink, list bool
	mutants      bool
}

func init() { commands = append(commands, newSimCommand) }

func newSimCommand() *cobra.Command {
	var f simFlags
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "simulate clusters under faults and check all that they do",
		Long: `sim runs simulated clusters, one for each seed, in virtual time: links that delay, drop,
duplicate, reorder and truncate messages, power failures with partial writes, slow and failing
disks, corrupt bytes, clock drift, snapshots, membership changes. Everything is checked after
every step and at the end. The same seed always has the same run.

Protocol craft is raft with placement code: members keep fragments of large values.
rs-raft does so with fixed quorums, for 5 and 7 nodes. niagara merges several instances
of raft, with either placement, into one log. multi-raft hashes keys over groups of raft
without a common order.

A seed that fails is printed with the command that runs it again and prints its
trace. The exit code is 1 if any seed failed.`,
		Example: `  braid sim --nodes 5 --seeds 1-2000
  braid sim --protocol craft --nodes 5 --seeds 1-2000
  braid sim --protocol niagara --instances 3 --placement code --seeds 1-2000
  braid sim --nodes 3 --seeds 17 --trace
  braid sim --nodes 3 --seeds 17 --trace --trace-filter "FAULT|is leader"
  braid sim --nodes 3 --seeds 17 --trace --trace-diagram | less -S
  braid sim --nodes 3 --seeds 1-1000 --mutant forget-vote
  braid sim --nodes 5 --net regions=us-east-1+eu-west-1+ap-northeast-1 --seeds 1-500
  braid sim --mutants
  braid sim --duration 5m --seeds 1-100000000`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.register(cmd.Flags())
	f.registerTrace(cmd.Flags())
	return cmd
}

// register adds the flags, without those of traces.
func (f *simFlags) register(fl *pflag.FlagSet) {
	fl.StringVar(&f.campaign.Protocol, "protocol", "raft", "protocol to simulate: "+strings.Join(registry.Names(), ", "))
	fl.IntVar(&f.campaign.Nodes, "nodes", 3, "voters at the beginning (1-9)")
	fl.StringVar(&f.campaign.Placement, "placement", "",
		"where large values are kept: copy or code (default: the protocol's own)")
	fl.StringVar(&f.campaign.Order, "order", "", "how instances are merged into one log: single, "+
		"niagara, or keyed (not at all) (default: the protocol's own)")
	fl.IntVar(&f.campaign.Instances, "instances", 0, "instances that niagara merges into one log (default 3), or "+
		"groups of multi-raft and wpaxos (default: as many as nodes)")
	fl.StringVar(&f.campaign.Net, "net", "",
		`the distance between members, as in "braid up": latency, jitter, regions, pairs; `+
			"timeouts grow with it (default: drawn by the seed, the same for all links)")
	settings.OwnFlags(fl, registry.Settings(), registry.Having, true, &f.campaign.Own)
	fl.StringVar(&f.seeds, "seeds", "1-1000", "seeds to run, FIRST-LAST or one number")
	fl.DurationVar(&f.campaign.Duration, "duration", 0, "time after which no further run starts (0: run all seeds)")
	fl.IntVar(&f.campaign.Workers, "workers", 0, "parallel runs (0: one for each processor)")
	fl.IntVar(&f.campaign.Failures, "failures", 1, "failing seeds after which to stop")
	fl.StringVar(&f.campaign.Mutant, "mutant", "", "run a known-unsafe variant (see --list)")
	fl.StringSliceVar(&f.campaign.Without, "without", nil, "kinds of faults to leave out (see --list)")
	fl.BoolVar(&f.shrink, "shrink", false, "look for faults that a failing seed does not need")
	fl.BoolVar(&f.json, "json", false, "print the result as JSON")
	fl.BoolVar(&f.mutants, "mutants", false, "search for every known-unsafe variant, from seed 1 on, and print after "+
		"how many seeds each is found")
	fl.BoolVar(&f.list, "list", false, "list protocols, mutants and kinds of faults")
}

func (f *simFlags) run(cmd *cobra.Command) error {
	out := cmd.OutOrStdout()
	if f.list {
		return listSim(out)
	}
	if f.mutants {
		return f.hunt(cmd)
	}
	if err := errors.Join(f.parseSeeds(), f.checkTrace()); err != nil {
		return err
	}
	if err := errors.Join(readNet(&f.campaign.Net), f.campaign.Validate()); err != nil {
		return usageError{err}
	}
	if err := f.printTolerance(); err != nil {
		return usageError{err}
	}
	debug.SetGCPercent(400) // many small worlds: fewer collections are twice as fast
	if f.trace {
		return f.traceOne(out)
	}
	p := newProgress(f.json)
	f.campaign.Progress = func(s sim.Summary) { p.put("", float64(s.Runs)/float64(max(1, s.Wanted)), progressLine(&s)) }
	sum, err := f.campaign.Run(cmd.Context().Done())
	if err != nil {
		return err
	}
	p.clear()
	return f.report(out, &sum)
}

// printTolerance prints which failures the cluster tolerates, unless its quorums are majorities.
func (f *simFlags) printTolerance() error {
	line, err := settings.Tolerance(f.campaign.Protocol, f.campaign.Own, f.campaign.Nodes, nil)
	if line != "" && !f.json {
		fmt.Fprintln(os.Stderr, line)
	}
	return err
}

func listSim(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "protocols: %s\n\nFAULT\tWHAT HAPPENS\n", strings.Join(registry.Names(), " "))
	for _, f := range sim.FaultKinds() {
		fmt.Fprintf(t, "%s\t%s\n", f.Name, f.Does)
	}
	fmt.Fprintln(t, "\nMUTANT\tBREAKS\tWHAT IT DOES WRONG")
	for _, m := range sim.Hunts() {
		fmt.Fprintf(t, "%s\t%s\t%s\n", m.Name, m.Where, m.Does)
	}
	return t.Flush()
}

func (f *simFlags) parseSeeds() error {
	first, last, isRange := strings.Cut(f.seeds, "-")
	if !isRange {
		last = first
	}
	var err1, err2 error
	f.campaign.First, err1 = strconv.ParseUint(first, 10, 64)
	f.campaign.Last, err2 = strconv.ParseUint(last, 10, 64)
	if err1 != nil || err2 != nil {
		return usagef("--seeds %q: want FIRST-LAST, for example 1-2000", f.seeds)
	}
	return nil
}

// report prints the summary, and for every failing seed the command that runs it again.
func (f *simFlags) report(out io.Writer, sum *sim.Summary) error {
	if f.json {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		if err := enc.Encode(sum); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(out, "%s\n\n%s", progressLine(sum), sum.Events)
		for _, failure := range sum.Failed {
			fmt.Fprintf(out, "\nFAILED %s\nreplay: %s\n", failure.Error, failure.Replay)
			if f.shrink {
				o, res := sim.Shrink(f.campaign.Options(failure.Seed))
				if res.Violation != nil {
					fmt.Fprintf(out, "also without %s: %v\n", strings.Join(o.Without, ","), res.Violation)
				}
			}
		}
	}
	if n := len(sum.Failed); n > 0 {
		return fmt.Errorf("%d of %d runs violated a promise", n, sum.Runs)
	}
	return nil
}

func progressLine(s *sim.Summary) string {
	return fmt.Sprintf("%s × %d: %d of %d seeds, %d failed, %d steps, %d writes acknowledged, %s simulated, %.0f seeds/s",
		s.Protocol, s.Nodes, s.Runs, s.Wanted, len(s.Failed), s.Steps, s.Acked, s.Virtual.Round(time.Second), s.RunsPerS)
}
