package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/bench/workload"
	"github.com/braidlog/braid/internal/transport/netspec"
	"github.com/braidlog/braid/server"
)

// benchSwitchFlags are the flags of braid bench switch.
type benchSwitchFlags struct {
	config         bench.SwitchConfig
	values, larges string
	data           string
	quick, keep    bool
	json           bool
}

func newBenchSwitchCommand() *cobra.Command {
	var f benchSwitchFlags
	cmd := &cobra.Command{
		Use:   "switch",
		Short: "benchmark clusters that change their protocol",
		Long: `switch starts a cluster as processes on this machine, and changes its protocol under a constant
load, as "braid switch" does. By default it makes all switches from each protocol to each other
one, in one cluster that goes through all of them, and reports for each:

  pause           the longest time around the switch without an answered put, by any client;
                  with --net also in round trips
  pause before    the longest in the measured time before the switch
  slowest put     that was under way around the switch
  switch          until the command was answered
  before, after   puts a second with the old protocol and with the new one; with --born also
                  of another cluster that began with the new one, measured right after it,
                  and after/born, the ratio
  retried         requests that failed because there was no leader or no answer; the client
                  goes on at the next member
  errors          all other requests that failed

Every client has one request in flight at a time. At the end all keys are read at each member. The
history of all clients is checked for linearizability, and each answered write must have taken
effect once. If not, or if a switch fails, the exit code is 1. A failed switch ends its cluster, and
the next one begins in a new cluster.`,
		Example: `  braid bench switch --quick
  braid bench switch --nodes 5 --born --json
  braid bench switch --net latency=20ms
  braid bench switch --from raft --to multi-paxos,iss --val-size 1KiB --large-share 0.02 --transactions 0.2`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.register(cmd)
	return cmd
}

func (f *benchSwitchFlags) register(cmd *cobra.Command) {
	fl, c := cmd.Flags(), &f.config
	all := strings.Join(bench.Switchable(), ", ")
	fl.StringSliceVar(&c.From, "from", bench.Switchable(), "protocols to switch from: "+all)
	fl.StringSliceVar(&c.To, "to", bench.Switchable(), "protocols to switch to: "+all)
	fl.IntVar(&c.Nodes, "nodes", 3, "members of the cluster")
	fl.StringVar(&c.Net, "net", "", netspec.Usage)
	fl.IntVar(&c.Clients, "clients", 16, "clients, each with one request in flight")
	fl.IntVar(&c.Keys, "key-space", 100, "number of different keys")
	fl.StringVar(&f.values, "val-size", "64", "bytes of a value")
	fl.StringVar(&f.larges, "large-size", "64KiB", "bytes of a large value")
	fl.Float64Var(&c.LargeShare, "large-share", 0, "share of large values")
	fl.Float64Var(&c.Transactions, "transactions", 0.05,
		"share of transactions: a key is read, then put unless it has changed")
	fl.Float64Var(&c.Reads, "reads", 0.05, "share of reads, which the check of the history needs")
	fl.Float64Var(&c.Throttle, "throttle", 0, "maximal requests a second over all clients (0: no limit)")
	fl.DurationVar(&c.Window, "duration", 3*time.Second,
		"duration of each measurement of the throughput (with --quick 1s)")
	fl.DurationVar(&c.Settle, "settle", time.Second, "time after a switch before that (with --quick 500ms)")
	fl.DurationVar(&c.Timeout, "timeout", 30*time.Second, "time limit of a switch")
	fl.BoolVar(&c.Born, "born", false, "compare with clusters that began with the protocol")
	fl.DurationVar(&c.CheckLimit, "check-limit", time.Minute, "time limit of the check of a history")
	fl.Uint64Var(&c.Seed, "seed", 1, "seed of all random choices")
	fl.BoolVar(&f.quick, "quick", false, "measure for a shorter time")
	fl.StringVar(&f.data, "data", "",
		"parent of the members' directories, on a disk (default: the temporary directory)")
	fl.BoolVar(&f.keep, "keep", false, "keep the members' directories, with their logs")
	fl.BoolVar(&f.json, "json", false, "print the result as JSON")
}

// complete sets defaults that depend on other flags, and validates.
func (f *benchSwitchFlags) complete(given func(string) bool) error {
	c := &f.config
	if f.quick && !given("duration") {
		c.Window = time.Second
	}
	if f.quick && !given("settle") {
		c.Settle = 500 * time.Millisecond
	}
	for _, size := range []struct {
		flag, text string
		to         *int
	}{{"val-size", f.values, &c.ValSize}, {"large-size", f.larges, &c.LargeSize}} {
		s, err := workload.ParseSizes(size.text)
		switch {
		case err != nil:
			return fmt.Errorf("--%s: %w", size.flag, err)
		case s.Min != s.Max:
			return fmt.Errorf("--%s %s: must be one size", size.flag, size.text)
		}
		*size.to = s.Max
	}
	if err := readNet(&c.Net); err != nil {
		return err
	}
	return c.Validate()
}

func (f *benchSwitchFlags) run(cmd *cobra.Command) error {
	if err := f.complete(cmd.Flags().Changed); err != nil {
		return usageError{err}
	}
	c := &f.config
	var err error
	if c.Executable, err = os.Executable(); err != nil {
		return err
	}
	dir, remove, err := bench.DataDir(f.data)
	if err != nil {
		return err
	}
	if !f.keep {
		defer remove()
	}
	progress := func(line string) { fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", cmd.CommandPath(), line) }
	if f.keep || !f.json {
		progress(fmt.Sprintf("members' directories in %s (%s)", dir, bench.Filesystem(dir)))
	}
	c.Dir, c.Progress = dir, progress
	c.Switch = func(ctx context.Context, member grpc.ClientConnInterface, protocol string) error {
		_, err := server.Switch(ctx, member, braid.Switch{Protocol: protocol})
		return err
	}
	result, err := bench.RunSwitch(cmd.Context(), *c)
	if result == nil {
		return err
	}
	if err := printResult(cmd.OutOrStdout(), f.json, result); err != nil {
		return err
	}
	switch {
	case err != nil && !errors.Is(err, context.Canceled):
		return err
	case len(result.Violations) > 0:
		return fmt.Errorf("the clusters did not keep their promises: %s", result.Violations[0])
	case result.FailedSwitches > 0:
		return fmt.Errorf("%d of %d switches failed", result.FailedSwitches, len(result.Pairs))
	}
	return nil
}
