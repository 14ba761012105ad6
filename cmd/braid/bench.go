package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/settings"
	"github.com/braidlog/braid/internal/transport/netspec"
)

func init() { commands = append(commands, newBenchCommand) }

func newBenchCommand() *cobra.Command {
	return group("bench", "measure the log and the server, and their peers",
		newBenchLogCommand(), newBenchKVCommand(), newBenchWatchCommand(), newBenchKubernetesCommand(),
		newBenchBackupCommand(), newBenchDefragCommand(), newBenchSwitchCommand(), newBenchPaperCommand(),
		newPaperMemberCommand(), newMapKVCommand(), newBenchLimitCommand())
}

// benchLogFlags are the flags of braid bench log.
type benchLogFlags struct {
	config  bench.LogConfig
	peers   []string
	compare bool
	rounds  int
	rate    string
	rates   []float64 // of --rate
	curve   bool
	maxP99  time.Duration
	out     string
	data    string
	profile string
	gc      int
	json    bool
}

func newBenchLogCommand() *cobra.Command {
	var f benchLogFlags
	cmd := &cobra.Command{
		Use:   "log",
		Short: "benchmark the log of a cluster in this process",
		Long: `log starts a cluster with all its members in this process, each with its own directory, real
fsyncs and loopback TCP between them, and proposes commands to the leader:

  --inflight N    an open window of N commands (the default)
  --proposers P   a closed loop: P goroutines, each with one command at a time
  --rate R        R commands a second; latency counts from when a command was due
  --idle          none: the result is the CPU of the members in percent of a core, and what they
                  send and sync

Latency over throughput, with a new cluster for each rate, and latency from when due:

  --rate R1,R2,…  these rates, in ascending order
  --curve         doubles the rate (from --rate R, by default 10000) until two in a row are
                  too high, then measures three between the highest sustained rate and the
                  lowest that was too high. With peers each contestant has its own curve

A rate is too high when less than 95 % of the due commands complete, or when the p99 is
above --max-p99. With --out DIR the curves are also drawn: curve.svg, and all figures.

At the end it verifies that all members applied the same commands in the same order, each
acknowledged one exactly once; otherwise the exit code is 1. CPU is that of this process:
all members and the load. Bytes on disk are those of all members.

With --peer or --compare the same load runs on other libraries, in alternating rounds, each in
a separate process with its members and the load. --peer also takes braid's own protocols,
with the same settings as far as they have them.

--peer limit measures the least that a log can do: a fixed leader, batches, an fdatasync on
every member before it acknowledges, a commit at a majority, and nothing else: no elections,
sessions or repairs. It is no rival: the result has each contestant's share of it.

Protocol niagara merges --instances into one log. With --leaders spread the commands are
proposed at all members, each of which leads some instances; else at the leader of all.
With multi-raft keys are hashed over --instances groups (by default as many as members), each
with its own leader and order. Each command has a different key, and is proposed at the
leader of its group; a closed loop keeps to its member.
--cards and --net configure the members' network cards: instance r uses card r.`,
		Example: `  braid bench log --nodes 3 --payload 16 --duration 10s --json
  braid bench log --proposers 1000
  braid bench log --rate 50000
  braid bench log --rate 10000,100000,1000000 --duration 5s
  braid bench log --idle --warmup 3s --peer hashicorp-raft --peer etcd-raft
  braid bench log --curve --peer etcd-raft --out curves
  braid bench log --peer etcd-raft --peer hashicorp-raft
  braid bench log --peer limit --proposers 100
  braid bench log --protocol niagara --instances 4 --peer raft
  braid bench log --protocol niagara --leaders spread --cards 4 --net bandwidth=250mbit --payload 2048 --peer raft
  braid bench log --protocol niagara --instances 5 --placement code --nodes 5 --payload 524288 --inflight 40`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.register(cmd)
	return cmd
}

func (f *benchLogFlags) register(cmd *cobra.Command) {
	fl, c := cmd.Flags(), &f.config
	peers := append(bench.Protocols(true), bench.Limit)
	all := strings.Join(slices.Concat(bench.Protocols(false), peers), ", ")
	fl.StringVar(&c.Protocol, "protocol", "raft", "protocol to measure: "+all)
	fl.StringArrayVar(&f.peers, "peer", nil, "also measure this one and compare; may be repeated: "+
		strings.Join(peers, ", "))
	fl.BoolVar(&f.compare, "compare", false, "compare with every other library")
	fl.IntVar(&f.rounds, "rounds", 0, "runs of each contestant, or at each rate of a curve; the figures are medians "+
		"(default 3 with peers and one rate, else 1)")
	fl.IntVar(&c.Nodes, "nodes", 3, "members of the cluster")
	fl.IntVar(&c.Load.Payload, "payload", 16, "bytes of a command, at least 8")
	fl.IntVar(&c.Load.Inflight, "inflight", 0, "commands in flight (default 100000, or 64 MiB of them)")
	fl.IntVar(&c.Load.Proposers, "proposers", 0, "closed loop with this number of proposers")
	fl.BoolVar(&c.Load.Idle, "idle", false, "no commands: what the members use while nothing happens")
	fl.StringVar(&f.rate, "rate", "", "commands a second, whether or not the cluster keeps up; or several rates")
	fl.BoolVar(&f.curve, "curve", false, "raise the rate until the cluster is saturated")
	fl.DurationVar(&f.maxP99, "max-p99", 500*time.Millisecond,
		"with several rates: the p99 above which a cluster counts as saturated")
	fl.StringVar(&f.out, "out", "", "with several rates: directory for pictures and figures; made if missing")
	fl.DurationVar(&c.Load.Duration, "duration", 10*time.Second,
		"duration of the measurement, with --curve at each rate (default there 5s)")
	fl.DurationVar(&c.Load.Warmup, "warmup", time.Second, "duration of the load before the measurement")
	fl.StringVar(&f.data, "data", "", "parent of the members' directories, on a disk (default: the temporary directory)")
	registerRivals(fl, &c.Rivals)
	fl.IntVar(&f.gc, "gc-percent", 400, "growth of the heap between garbage collections, for all contestants; the "+
		"variable GOGC wins")
	fl.StringVar(&f.profile, "cpuprofile", "",
		"write a CPU profile of the whole run to this file, without other libraries")
	fl.BoolVar(&f.json, "json", false, "print the result as JSON")
	s := &c.Settings
	fl.BoolVar(&s.NoBatching, "no-batching", false, "an entry for each command")
	fl.BoolVar(&s.NoPipeline, "no-pipeline", false, "one frame in flight to a follower")
	fl.BoolVar(&s.NoParallelAppend, "no-parallel-append", false, "the leader writes its log before it sends")
	fl.BoolVar(&s.NoAsyncApply, "no-async-apply", false, "apply in the replication loop")
	fl.IntVar(&s.MaxBatchBytes, "max-batch-bytes", 0,
		"bytes of an entry at which a batch is cut (0: the protocol's default)")
	fl.IntVar(&s.MaxBatchCommands, "max-batch-commands", 0,
		"commands of an entry at which a batch is cut (0: no limit); 1 is an entry for each, as in etcd")
	settings.CommonFlags(fl, settings.Layout, &s.Values)
	settings.OwnFlags(fl, registry.Settings(), registry.Having, true, &s.Values)
	fl.IntVar(&s.Cards, "cards", 0, "network cards of a member, with an address each; instances are "+
		"distributed over them (default 1)")
	fl.StringVar(&s.Net, "net", "", netspec.Usage+"; each card has the bandwidth")
	fl.IntVar(&s.PipelineDepth, "pipeline-depth", 0, "frames in flight to a follower (0: the protocol's default)")
}

// registerRivals registers the flag for the program with other libraries and servers.
func registerRivals(fl *pflag.FlagSet, path *string) {
	fl.StringVar(path, "rivals", "", "path of "+bench.RivalsProgram+
		", the program of the libraries and servers to compare with (default: next to this one, or in PATH)")
}

// names are the contestants, perhaps some of them twice.
func (f *benchLogFlags) names() []string {
	names := append([]string{f.config.Protocol}, f.peers...)
	if f.compare {
		names = append(names, bench.Protocols(true)...)
	}
	return names
}

// contestants returns the configurations to run. The first is compared with the others.
func (f *benchLogFlags) contestants() []bench.LogConfig {
	names := f.names()
	var out []bench.LogConfig
	for i, name := range names {
		if !slices.Contains(names[:i], name) {
			c := f.config
			c.Protocol = name
			if i > 0 {
				c.Settings = c.Settings.Of(name)
			}
			out = append(out, c)
		}
	}
	return out
}

// complete sets defaults that depend on other flags, and validates.
func (f *benchLogFlags) complete(cmd *cobra.Command) error {
	for _, flag := range []string{"inflight", "proposers"} {
		if v := cmd.Flags().Lookup(flag); v.Changed && (v.Value.String() == "0" || strings.HasPrefix(v.Value.String(), "-")) {
			return usagef("--%s %s: must be positive", flag, v.Value)
		}
	}
	if err := f.completeRates(cmd.Flags().Changed); err != nil {
		return usageError{err}
	}
	if l := &f.config.Load; !l.Idle && l.Inflight == 0 && l.Proposers == 0 {
		const most, mostBytes = 100_000, 64 << 20
		l.Inflight = min(most, max(16, mostBytes/max(l.Payload, 1)))
	}
	if err := readNet(&f.config.Settings.Net); err != nil {
		return usageError{err}
	}
	for _, c := range f.contestants() {
		if err := c.Validate(); err != nil {
			return usageError{err}
		}
	}
	if f.gc < 1 {
		return usagef("--gc-percent %d: must be at least 1", f.gc)
	}
	contestants := len(f.contestants())
	if f.several() {
		contestants = 1 // several rates confirm each other
	}
	if err := completeRounds(&f.rounds, cmd.Flags().Changed("rounds"), contestants); err != nil || !f.several() {
		return err
	}
	c := f.curves()
	if err := c.Validate(); err != nil {
		return usageError{err}
	}
	return nil
}

// completeRounds chooses the number of rounds if none was given.
func completeRounds(rounds *int, given bool, contestants int) error {
	switch {
	case given && *rounds < 1:
		return usagef("--rounds %d: must be at least 1", *rounds)
	case !given && contestants > 1:
		*rounds = 3
	case !given:
		*rounds = 1
	}
	return nil
}

func (f *benchLogFlags) run(cmd *cobra.Command) error {
	if err := f.complete(cmd); err != nil {
		return err
	}
	var err error
	if f.config.Rivals, err = bench.FindRivals(f.config.Rivals, f.names()); err != nil {
		return err
	}
	line, err := settings.Tolerance(f.config.Protocol, f.config.Settings.Values, f.config.Nodes, nil)
	if err != nil {
		return usageError{err}
	}
	if line != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), line)
	}
	if f.out != "" {
		if err := os.MkdirAll(f.out, 0o755); err != nil { // before minutes of measuring
			return fmt.Errorf("--out: %w", err)
		}
	}
	dir, remove, err := bench.DataDir(f.data)
	if err != nil {
		return err
	}
	defer remove()
	f.config.Dir = dir
	progress := newProgress(f.json)
	f.config.Progress = progress.show
	if !f.json {
		fmt.Fprintf(cmd.ErrOrStderr(), "members' directories in %s (%s)\n", dir, bench.Filesystem(dir))
	}
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(f.gc))
	}
	stop, err := profileCPU(f.profile)
	if err != nil {
		return err
	}
	if f.several() {
		return f.runCurves(cmd, progress, stop)
	}
	result, err := bench.RunLogContest(cmd.Context(), f.contestants(), f.rounds)
	stop()
	progress.clear()
	if result == nil {
		return err
	}
	if perr := f.print(cmd.OutOrStdout(), result); perr != nil {
		return perr
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	for _, r := range result.Results {
		if !r.Verified {
			return fmt.Errorf("%s did not keep its promises: %s", r.Protocol, strings.Join(r.Violations, "; "))
		}
	}
	return nil
}

// profileCPU writes a CPU profile to a file until it is stopped; to "" it does nothing.
func profileCPU(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("--cpuprofile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { pprof.StopCPUProfile(); _ = file.Close() }, nil
}

// print writes one result alone, several as a contest.
func (f *benchLogFlags) print(out io.Writer, c *bench.LogContest) error {
	single := len(c.Results) == 1 && f.rounds == 1
	switch {
	case f.json && single:
		return bench.WriteJSON(out, c.Results[0])
	case f.json:
		return bench.WriteJSON(out, c)
	case single:
		c.Results[0].WriteText(out)
	default:
		c.WriteText(out)
	}
	return nil
}
