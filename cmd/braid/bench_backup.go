package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/bench/workload"
)

func newBenchBackupCommand() *cobra.Command {
	var f contestFlags
	var c bench.BackupConfig
	sizes := "16-1MiB"
	cmd := &cobra.Command{
		Use:   "backup",
		Short: "benchmark backups of a member, and restoring them",
		Long: `backup starts clusters as processes on this machine, one after the other in alternating rounds,
and fills them. It makes a backup of the first member and prepares a data directory from it; then it
changes some of the keys, and does so again. The second backup of braid is an increment. For other
servers it uses etcdctl and etcdutl, which are built in. It shows the time and the peak of the memory of
these commands, and the peak of the member's memory during the backup.

The restored data must have all keys of the member, byte for byte. Otherwise the exit code is 1.`,
		Example: `  braid bench backup
  braid bench backup --peer etcd --mib 1024 --val-size 16-1MiB`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		validate := func() (err error) {
			c.Sizes, err = workload.ParseSizes(sizes)
			return errors.Join(err, c.Validate())
		}
		return runContest(cmd, &f, &c.Contest, &c.Progress, validate, func() (contestResult, error) {
			r, err := bench.RunBackup(cmd.Context(), c)
			if r == nil {
				return nil, err
			}
			return r, err
		})
	}
	fl := cmd.Flags()
	f.register(fl)
	fl.IntVar(&c.MiB, "mib", 1024, "MiB of values")
	fl.StringVar(&sizes, "val-size", sizes, "bytes of the values, or a range of them")
	fl.IntVar(&c.Change, "change", 1, "percent of the keys that are changed before the second backup")
	return cmd
}
