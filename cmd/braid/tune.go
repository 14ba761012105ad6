package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/settings"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/server"
)

func init() { commands = append(commands, newTuneCommand) }

func newTuneCommand() *cobra.Command {
	var f adminFlags
	var t braid.Tuning
	asJSON := false
	cmd := &cobra.Command{
		Use:   "tune [NAME=VALUE…]",
		Short: "Show and change the settings of a running cluster",
		Long: `tune changes settings that all members share, without a pause: the log carries them, so members
that are down, and those that join later, learn them from it. NAME is that of a flag of "braid
serve", and VALUE what the flag takes; nothing behind "=" is the default. It returns when the
change is active on the member that got the request.

All changes of one call make one new version of the profile, except instances: the number of
instances is changed last, and is no part of the profile. With --version the change is refused if
another version is active.

Without NAME=VALUE it shows the profile that the member has applied, the profiles before it, and all
settings, with what a change of each waits for; with --version only if that one is active. Flags of
members have no effect on these settings once the cluster runs.

A change that takes longer than a second says for what it waits, on standard error, but not with
--json.

The exit code is 1 if the change is refused. Nothing was changed then, unless the error says so.`,
		Example: `  braid tune
  braid tune election-timeout=500ms heartbeat-interval=50ms
  braid tune placement=code code-k=3
  braid tune lease-reads= --version 4
  braid tune --endpoints 10.0.0.1:2379 --user root:secret --json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if t.Set, err = parsePairs(args, "NAME=VALUE"); err == nil {
				err = f.check()
			}
			if err != nil {
				return usageError{err}
			}
			if err := checkShared(t.Set); err != nil {
				return err
			}
			var tuned server.Tuned
			change := func() error {
				return f.call(cmd.Context(), func(ctx context.Context, member grpc.ClientConnInterface) (err error) {
					tuned, err = server.Tune(ctx, member, t)
					return err
				})
			}
			if asJSON || len(t.Set) == 0 {
				err = change()
			} else {
				instances, _ := strconv.Atoi(t.Set[common.Instances.Name])
				err = f.waiting(cmd, instances, change)
			}
			switch {
			case err != nil:
				return err
			case asJSON:
				return json.NewEncoder(cmd.OutOrStdout()).Encode(&tuned)
			}
			return printTuned(cmd.OutOrStdout(), &tuned, t.Set)
		},
	}
	f.flags(cmd.Flags())
	cmd.Flags().Uint64Var(&t.Version, "version", 0, "change only this version of the profile; 0: any")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// checkShared refuses flags of each member that are no settings of the cluster, which does not know them.
func checkShared(set map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if settings.OfMember(name) {
			return fmt.Errorf("%s: it is a flag of each member: restart the member with it", name)
		}
	}
	return nil
}

// printTuned prints a profile and its settings. If some were set it prints only these.
func printTuned(w io.Writer, tuned *server.Tuned, set map[string]string) error {
	p, out := &tuned.Profile, tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(out, "profile %d%s%s\n", p.Version, dated(p.Since), named(p.Protocol))
	if p.Version == 0 {
		fmt.Fprintln(out, "the log has no profile yet: members have the settings of their flags")
	}
	for _, before := range slices.Backward(p.Earlier) {
		if len(set) == 0 {
			fmt.Fprintf(out, "profile %d%s%s had %s\n", before.Version, dated(before.Since), named(before.Protocol),
				pairs(before.Settings))
		}
	}
	fmt.Fprintln(out, "\nSETTING\tVALUE\tDEFAULT\tA CHANGE WAITS FOR")
	for _, s := range tuned.Settings {
		if _, changed := set[s.Name]; changed || len(set) == 0 {
			fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", s.Name, orDash(s.Value), orDash(s.Default), s.Waits)
		}
	}
	return out.Flush()
}

// named is the text about the protocol of a profile.
func named(protocol string) string {
	if protocol == "" {
		return ""
	}
	return ", protocol " + protocol
}

// dated is the text about the time of a profile.
func dated(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " of " + t.Format(time.DateTime)
}

// pairs are settings in the form NAME=VALUE, sorted.
func pairs(settings map[string]string) string {
	if len(settings) == 0 {
		return "the same settings"
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		all = append(all, name+"="+settings[name])
	}
	return strings.Join(all, " ")
}
