package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/braidlog/braid/internal/status"
	"github.com/braidlog/braid/server"
)

func init() { commands = append(commands, newBackupCommand) }

// backupFlags are the flags of braid backup.
type backupFlags struct {
	adminFlags
	server.BackupOptions
	list, check, json bool
}

func newBackupCommand() *cobra.Command {
	f := backupFlags{adminFlags: adminFlags{timeout: time.Hour, question: true}}
	cmd := &cobra.Command{
		Use:   "backup DIR",
		Short: "Add a backup of a cluster to a directory: first a whole one, then the changes",
		Long: `backup adds a backup of the cluster to DIR. The first one is whole: a snapshot file, as "braid ctl
snapshot save" and etcdctl save it. The next ones are increments: the history since the backup before,
with leases, users, roles, alarms and quotas as they are now. Each has the state at one revision,
behind all writes that were acknowledged before.

A backup appears in DIR when it is complete, read again and compared with its SHA-256, and durable.
If the command or the member is killed, DIR has the backups from before. The members at --endpoints are
asked in turn, also when one of them ends meanwhile.

If history was compacted since the backup before, the increment lists the older history that is
left. A directory has the backups of one cluster; those of another one are refused. A server
without increments, as etcd, gets a whole backup each time.

"braid restore DIR" restores the newest backup, or that of a revision; so does "braid up --restore
DIR". An increment needs all backups back to the whole one that it continues.

--list shows the backups in DIR, and --check also reads all of each and compares it with its SHA-256;
both need no member, and the exit code is 1 if a backup cannot be restored.`,
		Example: `  braid backup backups/
  braid backup backups/ --increments 23 --keep 7     # each hour: a whole one a day, for a week
  braid backup backups/ --check
  braid backup backups/ --endpoints https://10.0.0.1:2379 --cacert ca.crt --user root:secret --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Dir = args[0]
			if err := errors.Join(f.adminFlags.check(), f.validate()); err != nil {
				return usageError{err}
			}
			if f.list || f.check {
				return f.show(cmd)
			}
			return f.run(cmd)
		},
	}
	fl := cmd.Flags()
	f.flags(fl)
	fl.Lookup("timeout").Usage = "time limit of the backup"
	fl.BoolVar(&f.Full, "full", false, "make a whole backup, no increment")
	fl.IntVar(&f.Increments, "increments", 0, "make a whole backup after this many increments (0: never)")
	fl.IntVar(&f.Keep, "keep", 0, "whole backups to keep, with their increments; older ones are removed (0: all)")
	fl.BoolVar(&f.list, "list", false, "show the backups in DIR")
	fl.BoolVar(&f.check, "check", false, "read and check the backups in DIR, and show them")
	fl.BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

func (f *backupFlags) validate() error {
	switch {
	case f.Dir == "":
		return errors.New("the directory is missing")
	case f.Increments < 0 || f.Keep < 0:
		return errors.New("--increments and --keep must not be negative")
	}
	return nil
}

// run makes a backup.
func (f *backupFlags) run(cmd *cobra.Command) error {
	if !f.json {
		f.Progress = backupProgress(cmd.ErrOrStderr(), f.Dir)
	}
	var made server.BackupMade
	err := f.call(cmd.Context(), func(ctx context.Context, member grpc.ClientConnInterface) (err error) {
		made, err = server.Backup(ctx, member, f.BackupOptions)
		return err
	})
	if err != nil {
		return err
	}
	if f.json {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(&made)
	}
	return printBackup(cmd.OutOrStdout(), f.Dir, &made)
}

// backupShown is the interval between lines about the progress of a backup.
const backupShown = 2 * time.Second

// backupProgress returns a function that writes a line each interval.
func backupProgress(w io.Writer, dir string) func(server.BackupProgress) {
	last := time.Now()
	return func(p server.BackupProgress) {
		if time.Since(last) < backupShown {
			return
		}
		last = time.Now()
		of := ""
		if p.Total > 0 {
			of = fmt.Sprintf(" of %s", status.Bytes(float64(p.Total)))
		}
		fmt.Fprintf(w, "%s: %s backup: %s%s\n", dir, p.Kind, status.Bytes(float64(p.Bytes)), of)
	}
}

// printBackup prints the outcome of a backup.
func printBackup(w io.Writer, dir string, made *server.BackupMade) error {
	b := &made.Backup
	if made.Unchanged {
		fmt.Fprintf(w, "nothing has changed since backup %d in %s, of revision %d\n", b.Number, dir, b.Now.Revision)
	} else {
		what := "whole, of revision"
		if b.Since != nil {
			what = fmt.Sprintf("increment of revisions %d to", b.Since.Revision)
		}
		fmt.Fprintf(w, "%s is complete: backup %d, %s %d, %s in %.2f s\n", b.Path(dir), b.Number, what, b.Now.Revision,
			status.Bytes(float64(b.Bytes)), made.Seconds)
	}
	if made.Full != "" && b.Number > 1 {
		fmt.Fprintf(w, "it is a whole one: %s\n", made.Full)
	}
	if made.Trimmed > 0 {
		fmt.Fprintf(w, "history was compacted up to revision %d since the backup before\n", made.Trimmed)
	}
	if n := len(made.Removed); n > 0 {
		fmt.Fprintf(w, "older backups were removed: %d\n", n)
	}
	return nil
}

// show prints the backups of the directory.
func (f *backupFlags) show(cmd *cobra.Command) error {
	all, err := f.backups(cmd.Context())
	if err != nil {
		return err
	}
	if f.json {
		err = json.NewEncoder(cmd.OutOrStdout()).Encode(all)
	} else {
		err = printBackups(cmd.OutOrStdout(), f.Dir, all)
	}
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Problem != "" {
			return errors.New(all[i].Problem)
		}
	}
	return nil
}

// backups returns the backups of the directory, checked if --check is given.
func (f *backupFlags) backups(ctx context.Context) ([]server.BackupInfo, error) {
	if f.check {
		return server.CheckBackups(ctx, f.Dir)
	}
	return server.Backups(f.Dir)
}

// printBackups prints a table.
func printBackups(w io.Writer, dir string, all []server.BackupInfo) error {
	if len(all) == 0 {
		_, err := fmt.Fprintf(w, "%s has no backups\n", dir)
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "BACKUP\tKIND\tREVISIONS\tSIZE\tTIME\tCLUSTER\tFILE")
	for i := range all {
		b := &all[i]
		revisions, problem := fmt.Sprintf("to %d", b.Now.Revision), ""
		if b.Since != nil {
			revisions = fmt.Sprintf("%d to %d", b.Since.Revision, b.Now.Revision)
		}
		if b.Problem != "" {
			problem = "\tcannot be restored"
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s%s\n",
			b.Number, b.Kind, revisions, status.Bytes(float64(b.Bytes)),
			b.Time.Local().Format(time.DateTime), b.Cluster, b.File, problem)
	}
	return table.Flush()
}
