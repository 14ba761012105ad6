package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/braidlog/braid/bench"
)

func newBenchWatchCommand() *cobra.Command {
	var f contestFlags
	var c bench.WatchConfig
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "benchmark servers with many watches",
		Long: `watch starts clusters as processes on this machine and measures puts, one cluster after the
other in alternating rounds, in phases:

  no watches      the puts alone
  watches         with --watchers watches of prefixes, which are read
  stalled         with as many; --stalled of them watch all keys, each on a connection of its own,
                  and are not read before the puts end
  catching up     with --history N: watches that start at old revisions, after N puts and while
                  puts go on. Half of them start before the first half of the history is
                  compacted, the others after it

Each watch must receive exactly the events of its keys, in order of revision. A watch may be
cancelled only with a compact revision: if its start is compacted, or if it was stalled. Otherwise
the exit code is 1.

The memory of a phase is that of the server that has most after the puts, before stalled watches
are read.`,
		Example: `  braid bench watch
  braid bench watch --peer etcd --history 100000
  braid bench watch --peer etcd --watchers 151 --stalled 150 --streams 1 --clients 10 \
      --val-size 61440 --put-total 1000 --duration 1m
  braid bench watch --watchers 10000 --streams 100 --prefixes 1000 --json`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return runContest(cmd, &f, &c.Contest, &c.Progress, c.Validate, func() (contestResult, error) {
			r, err := bench.RunWatch(cmd.Context(), c)
			if r == nil {
				return nil, err
			}
			return r, err
		})
	}
	fl := cmd.Flags()
	f.register(fl)
	fl.IntVar(&c.Watchers, "watchers", 1000, "watches of a prefix each")
	fl.IntVar(&c.Streams, "streams", 10, "connections of the watches, each with one stream")
	fl.IntVar(&c.Stalled, "stalled", 1, "watches of all keys that are not read before the puts end")
	fl.IntVar(&c.Prefixes, "prefixes", 100, "prefixes of the keys and the watches")
	fl.IntVar(&c.Clients, "clients", 50, "clients that put, each with one request in flight")
	fl.IntVar(&c.ValSize, "val-size", 256, "bytes of a value")
	fl.IntVar(&c.History, "history", 0, "puts before watches that start at old revisions (0: no such watches)")
	fl.Int64Var(&c.PutTotal, "put-total", 0, "puts of a phase, warm-up included (0: as many as its duration allows)")
	fl.Float64Var(&c.PutRate, "put-rate", 0, "maximal puts a second over all clients (0: no limit)")
	fl.DurationVar(&c.Duration, "duration", 3*time.Second, "duration of each phase")
	fl.DurationVar(&c.Warmup, "warmup", 500*time.Millisecond, "duration of the load before that")
	fl.Uint64Var(&c.Seed, "seed", 1, "seed of all random choices")
	return cmd
}
