package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/braidlog/braid/bench"
)

func newBenchDefragCommand() *cobra.Command {
	var f contestFlags
	var c bench.DefragConfig
	cmd := &cobra.Command{
		Use:   "defrag",
		Short: "benchmark puts while a member defragments its database",
		Long: `defrag starts clusters as processes on this machine, one after the other in alternating rounds.
It fills the databases, removes half of the keys, compacts, and lets the first member defragment.
A client of each member puts all the time. The result is the longest time between two puts that
were acknowledged: of the client of that member, and of the others, before and meanwhile.

Each member must have the last acknowledged put of each client afterwards. Otherwise the exit
code is 1.`,
		Example: `  braid bench defrag
  braid bench defrag --peer etcd --mib 350`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return runContest(cmd, &f, &c.Contest, &c.Progress, c.Validate, func() (contestResult, error) {
			r, err := bench.RunDefrag(cmd.Context(), c)
			if r == nil {
				return nil, err
			}
			return r, err
		})
	}
	fl := cmd.Flags()
	f.register(fl)
	fl.IntVar(&c.MiB, "mib", 350, "MiB that are in use; as many are free")
	fl.IntVar(&c.ValSize, "val-size", 10000, "bytes of the values that fill the database")
	fl.DurationVar(&c.Alone, "alone", 3*time.Second, "for how long the puts are measured before")
	return cmd
}
