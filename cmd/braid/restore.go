package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/braidlog/braid/internal/store"
)

func init() { commands = append(commands, newRestoreCommand) }

func newRestoreCommand() *cobra.Command {
	var dataDir string
	var f importFlags
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Prepare the data of a new member from a snapshot of braid or etcd",
		Long: `restore puts the keys, leases, users and alarms of a snapshot into the data directory of a
member that has not been started yet. Run it with the same file for every member of a new
cluster, then start them with "braid serve" and a new --initial-cluster-token. Revisions
continue after those of the snapshot. Clients that saw later ones, as controllers that
cache keys, do not notice that these are gone: --bump-revision N --mark-compacted makes
revisions continue N higher, and watches from before that end as compacted.

"braid up --restore FILE" does all of this on one machine, with the same flags.`,
		Example: `  braid ctl snapshot save backup.db
  braid restore backup.db --data-dir m1.braid`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if dataDir == "" {
				return usagef("--data-dir is missing")
			}
			if err := f.check(); err != nil {
				return usageError{err}
			}
			if err := restore(args[0], dataDir, f.ImportOptions); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s holds the keys of %s\n", dataDir, args[0])
			return err
		},
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "new data directory of the member")
	f.flags(cmd.Flags())
	return cmd
}

// importFlags are the flags that say how a snapshot becomes a member's data.
type importFlags struct {
	store.ImportOptions
	mark bool
}

func (f *importFlags) flags(fl *pflag.FlagSet) {
	fl.Uint64Var(&f.BumpRevision, "bump-revision", 0, "how much to add to the newest revision of a snapshot")
	fl.BoolVar(&f.mark, "mark-compacted", false, "everything up to the new revision counts as compacted")
	fl.BoolVar(&f.SkipHashCheck, "skip-hash-check", false,
		"accept a copy of a database file, which has no digest at its end")
}

func (f *importFlags) check() error {
	if f.mark != (f.BumpRevision > 0) {
		return errors.New("--bump-revision above 0 and --mark-compacted need each other")
	}
	return nil
}

// restore prepares a member's data directory.
func restore(file, dir string, o store.ImportOptions) error {
	if _, err := os.Stat(filepath.Join(dir, logDir)); !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return err
		}
		return fmt.Errorf("%s belongs to a member that was started: restore into a new directory", dir)
	}
	if err := refuseForeign(dir, ""); err != nil {
		return err
	}
	return store.Import(file, filepath.Join(dir, storeDir), o)
}
