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
	"github.com/braidlog/braid/server"
)

func init() { commands = append(commands, newRestoreCommand) }

func newRestoreCommand() *cobra.Command {
	var dataDir string
	var f importFlags
	cmd := &cobra.Command{
		Use:   "restore FILE|DIR",
		Short: "Prepare the data of a new member from a backup, or from a snapshot of braid or etcd",
		Long: `restore puts the keys, leases, users and alarms of a snapshot file, or of a directory of "braid
backup", into the data directory of a member that has not been started yet. Run it with the same
file or directory for every member of a new cluster, then start them with "braid serve" and a new
--initial-cluster-token. All digests are checked before anything is put into place.

From a directory it restores the newest backup, or that of --revision. Clients may have seen
revisions after the backup. So that none mistakes a new revision for one of those, revisions
continue 1000000000 higher, and watches from before that end as compacted. --bump-revision N
--mark-compacted sets another number, and with --bump-revision 0 revisions continue after that of
the backup.

From a snapshot file revisions continue after those of the snapshot, as with etcdutl, unless
--bump-revision N --mark-compacted is given.

"braid up --restore FILE|DIR" does all of this on one machine, with the same flags.`,
		Example: `  braid backup backups/
  braid restore backups/ --data-dir m1.braid
  braid restore backups/ --data-dir m1.braid --revision 81234
  braid ctl snapshot save backup.db
  braid restore backup.db --data-dir m1.braid`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if dataDir == "" {
				return usagef("--data-dir is missing")
			}
			if err := f.check(args[0]); err != nil {
				return usageError{err}
			}
			about, err := f.restore(args[0], dataDir)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s holds the keys of %s\n", dataDir, about)
			return err
		},
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "new data directory of the member")
	f.flags(cmd.Flags())
	return cmd
}

// importFlags are the flags for making a member's data from a snapshot or a backup.
type importFlags struct {
	bump           uint64
	mark, skipHash bool
	revision       int64
	given          *pflag.FlagSet
}

func (f *importFlags) flags(fl *pflag.FlagSet) {
	fl.Uint64Var(&f.bump, "bump-revision", 0,
		fmt.Sprintf(
			"number to add to the newest revision (for a directory of backups by default %d)", server.RestoreBump))
	fl.BoolVar(&f.mark, "mark-compacted", false, "everything up to the new revision counts as compacted")
	fl.BoolVar(&f.skipHash, "skip-hash-check", false,
		"accept a copy of a database file, which has no digest at its end")
	fl.Int64Var(&f.revision, "revision", 0, "revision of a backup in a directory of backups (0: the newest backup)")
	f.given = fl
}

// importNames are the names of these flags.
var importNames = []string{"bump-revision", "mark-compacted", "skip-hash-check", "revision"}

// isDir reports whether a source is a directory of backups.
func isDir(source string) bool {
	info, err := os.Stat(source)
	return err == nil && info.IsDir()
}

func (f *importFlags) check(source string) error {
	switch {
	case f.mark != (f.bump > 0):
		return errors.New("--bump-revision above 0 and --mark-compacted need each other")
	case isDir(source) && f.skipHash:
		return fmt.Errorf("--skip-hash-check is for files, and %s is a directory", source)
	case !isDir(source) && f.revision != 0:
		return fmt.Errorf("--revision is for directories of backups, and %s is none", source)
	case f.revision < 0:
		return fmt.Errorf("--revision %d does not exist", f.revision)
	}
	return nil
}

// restore prepares a member's data directory. It returns a description of the source.
func (f *importFlags) restore(source, dir string) (about string, err error) {
	if _, err := os.Stat(filepath.Join(dir, logDir)); !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return "", err
		}
		return "", fmt.Errorf("%s belongs to a member that was started: restore into a new directory", dir)
	}
	if err := refuseForeign(dir, ""); err != nil {
		return "", err
	}
	to := filepath.Join(dir, storeDir)
	if !isDir(source) {
		return source, store.Import(source, to, store.ImportOptions{SkipHashCheck: f.skipHash, BumpRevision: f.bump})
	}
	o := server.RestoreOptions{Revision: f.revision, Bump: f.bump,
		MayGoBack: f.bump == 0 && f.given.Changed("bump-revision")}
	i, err := server.RestoreBackup(source, to, o)
	return fmt.Sprintf("backup %d in %s, of revision %d; revisions continue behind %d", i.Number, source,
		i.Now.Revision, uint64(i.Now.Revision)+o.Added()), err
}
