package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/durable"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/server"
)

func init() { commands = append(commands, newSalvageCommand) }

func newSalvageCommand() *cobra.Command {
	var dirs []string
	cmd := &cobra.Command{
		Use:   "salvage FILE",
		Short: "Recover data after the permanent loss of a majority",
		Long: `salvage writes a snapshot of all data on the remaining members, from which a new cluster can
start. The members must not be running. Of several data directories the one with the longest log
(with several instances, in most of them) provides the state; fragments of large values come from
all of them.

A member's log has all entries that it acknowledged, although it may not know yet that they are
committed. salvage treats all of them as committed. Lost are the latest writes, if no remaining
member acknowledged them, and large values with too few fragments left. salvage lists the latter;
their keys count as deleted.

Use it only if the missing members never come back. If their disks are still readable, give
their directories too.`,
		Example: `  braid salvage rest.db --data-dir m1.braid --data-dir m2.braid
  braid restore rest.db --data-dir new1.braid        # for each first member of the new cluster
  braid serve --name n1 --data-dir new1.braid --initial-cluster-token after …`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(dirs) == 0 {
				return usagef("--data-dir is missing")
			}
			return salvage(cmd.Context(), cmd.OutOrStdout(), dirs, args[0])
		},
	}
	cmd.Flags().StringArrayVar(&dirs, "data-dir", nil,
		"data directory of a remaining member; may be repeated")
	return cmd
}

// salvage recovers the remaining data of data directories.
func salvage(ctx context.Context, out io.Writer, dirs []string, file string) (err error) {
	if _, err := os.Stat(file); err == nil {
		return fmt.Errorf("%s exists", file)
	}
	dirs, more, err := furthestFirst(dirs)
	if err != nil {
		return err
	}
	report, err := salvageInto(ctx, dirs, file)
	if err != nil {
		return err
	}
	return printSalvaged(out, dirs[0], more, file, &report)
}

// salvageInto writes a snapshot of what the first data directory has. The others may have parts of large values.
func salvageInto(ctx context.Context, dirs []string, file string) (report server.SalvageReport, err error) {
	work, err := os.MkdirTemp(filepath.Dir(file), "salvage-*")
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	c := server.SalvageConfig{
		NodeDir: filepath.Join(dirs[0], logDir), StoreDir: filepath.Join(dirs[0], storeDir),
		WorkDir: filepath.Join(work, storeDir),
	}
	for _, dir := range dirs[1:] {
		c.OtherNodeDirs = append(c.OtherNodeDirs, filepath.Join(dir, logDir))
	}
	part, err := os.CreateTemp(work, "snapshot")
	if err != nil {
		return report, err
	}
	report, err = server.Salvage(ctx, c, part)
	if err := errors.Join(err, part.Sync(), part.Close()); err != nil {
		return report, err
	}
	return report, errors.Join(os.Rename(part.Name(), file), durable.SyncDir(vfs.OS, filepath.Dir(file)))
}

// furthestFirst puts the data directory with the longest logs first. more are those with a longer log in one
// instance.
func furthestFirst(dirs []string) (ordered, more []string, err error) {
	logs := make([]string, len(dirs))
	for i, dir := range dirs {
		logs[i] = filepath.Join(dir, logDir)
		if _, err := os.Stat(filepath.Join(logs[i], "member.json")); err != nil {
			return nil, nil, fmt.Errorf("%s holds no member of braid: %w", dir, err)
		}
	}
	ordered, more, err = braid.FurthestFirst(logs)
	for _, all := range [][]string{ordered, more} {
		for i := range all {
			all[i] = filepath.Dir(all[i])
		}
	}
	return ordered, more, err
}

// printSalvaged prints what was recovered and what is lost.
func printSalvaged(out io.Writer, dir string, more []string, file string, r *server.SalvageReport) error {
	_, err := fmt.Fprintf(out, "%s holds revision %d, of %s; %d entries of its log were not known to be decided\n", file,
		r.Revision, dir, r.Behind)
	for _, other := range more {
		_, told := fmt.Fprintf(out, "%s has entries of an instance that are missing there\n", other)
		err = errors.Join(err, told)
	}
	if len(r.Lost) > 0 {
		_, more := fmt.Fprintf(out, "%d large values are lost, too little of them is left:\n", len(r.Lost))
		err = errors.Join(err, more)
	}
	for _, l := range r.Lost {
		_, more := fmt.Fprintf(out, "  %q of revision %d, %d bytes\n", l.Key, l.Revision, l.Bytes)
		err = errors.Join(err, more)
	}
	return err
}
