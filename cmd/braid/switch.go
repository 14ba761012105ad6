package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/status"
	"github.com/braidlog/braid/server"
)

func init() { commands = append(commands, newSwitchCommand) }

func newSwitchCommand() *cobra.Command {
	var f adminFlags
	var to braid.Switch
	asJSON, dry := false, false
	cmd := &cobra.Command{
		Use:   "switch PROTOCOL [NAME=VALUE…]",
		Short: "Change the protocol of a running cluster",
		Long: `switch changes a running cluster to another protocol, with the same members, data and clients. NAME
is that of a flag of "braid serve", and VALUE what the flag takes; nothing behind "=" is the
default. Other settings keep their values, if the protocol has them.

raft, craft, niagara and lcr become one another by a change of settings, as with "braid tune".
Between them, multi-paxos and iss, and for other quorums or epochs, the log is sealed, and continues
behind the seal under the next version of the profile. Writes wait meanwhile, for about as long as
for a new leader; none is lost. Lanes are turned off first.

With --dry-run it prints the steps and changes nothing. With --version the change is refused if
another version of the profile is active. It returns when the change is active on the member that
got the request; members that are down follow later. It may be repeated.

On standard error it says what is under way, but not with --json.

The exit code is 1 if the change is refused. Nothing was changed then, unless the error says so.`,
		Example: `  braid switch iss
  braid switch multi-paxos quorums=4/2 --dry-run
  braid switch niagara instances=8 --version 4
  braid switch raft --endpoints 10.0.0.1:2379 --user root:secret --json`,
		Args:      cobra.MinimumNArgs(1),
		ValidArgs: registry.Serving(),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if to.Protocol = args[0]; strings.Contains(to.Protocol, "=") {
				return usagef("%q: the protocol comes first", to.Protocol)
			}
			if to.Settings, err = parsePairs(args[1:], "NAME=VALUE"); err == nil {
				err = f.check()
			}
			if err != nil {
				return usageError{err}
			}
			if err := checkShared(to.Settings); err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if dry {
				plan, err := f.planSwitch(cmd.Context(), to)
				switch {
				case err != nil:
					return err
				case asJSON:
					return json.NewEncoder(out).Encode(&plan)
				}
				return printPlan(out, &plan)
			}
			p, err := f.switchTo(cmd, to, asJSON)
			switch {
			case err != nil:
				return err
			case asJSON:
				return json.NewEncoder(out).Encode(&p)
			}
			_, err = fmt.Fprintf(out, "the protocol is %s, profile %d%s\n", p.Protocol, p.Version, dated(p.Since))
			return err
		},
	}
	f.flags(cmd.Flags())
	cmd.Flags().Uint64Var(&to.Version, "version", 0, "replace only this version of the profile; 0: any")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print the steps, and change nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (f *adminFlags) planSwitch(ctx context.Context, to braid.Switch) (plan braid.SwitchPlan, err error) {
	err = f.call(ctx, func(ctx context.Context, member grpc.ClientConnInterface) (err error) {
		plan, err = server.PlanSwitch(ctx, member, to)
		return err
	})
	return plan, err
}

// switchTo makes the change, and unless it is to be quiet says what is under way.
func (f *adminFlags) switchTo(cmd *cobra.Command, to braid.Switch, quiet bool) (p braid.Profile, err error) {
	var planned atomic.Pointer[braid.SwitchPlan]
	change := func() error {
		p, err = f.changeProtocol(cmd.Context(), to, func(plan *braid.SwitchPlan) {
			before := planned.Swap(plan)
			for _, step := range planSteps(plan) {
				if !quiet && (before == nil || !slices.Contains(planSteps(before), step)) {
					fmt.Fprintf(cmd.ErrOrStderr(), "%s: to do: %s\n", cmd.CommandPath(), step)
				}
			}
		})
		return err
	}
	if quiet {
		return p, change()
	}
	err = f.telling(cmd, change, func(members []status.Member) string { return switchWaits(members, planned.Load()) })
	return p, err
}

// changeProtocol makes the change. It calls report with the plan of each attempt before the attempt.
func (f *adminFlags) changeProtocol(ctx context.Context, to braid.Switch, report func(*braid.SwitchPlan)) (
	p braid.Profile, err error,
) {
	err = f.call(ctx, func(ctx context.Context, member grpc.ClientConnInterface) error {
		// A profile that is replaced already may be what an earlier call has done.
		plan, err := server.PlanSwitch(ctx, member, to)
		if err != nil && grpcstatus.Code(err) != codes.Aborted {
			return err
		}
		if err == nil {
			report(&plan)
		}
		p, err = server.Switch(ctx, member, to)
		return err
	})
	return p, err
}

// planSteps are the steps of a change, in words.
func planSteps(p *braid.SwitchPlan) (steps []string) {
	if len(p.Tune) > 0 {
		steps = append(steps, "tune "+pairs(p.Tune))
	}
	if p.Seal > 0 {
		steps = append(steps, fmt.Sprintf("seal the log, and begin %s under profile %d", p.Protocol, p.Seal))
	}
	return steps
}

// printPlan prints the steps of a change, and the settings behind it.
func printPlan(w io.Writer, p *braid.SwitchPlan) error {
	steps := planSteps(p)
	if len(steps) == 0 {
		_, err := fmt.Fprintf(w, "nothing to do: the protocol is %s, profile %d\n", p.Protocol, p.Version)
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "profile %d is replaced:\n", p.Version)
	for i, step := range steps {
		fmt.Fprintf(&b, "%d. %s\n", i+1, step)
	}
	fmt.Fprintf(&b, "then the protocol is %s, with %s\n", p.Protocol, pairs(p.Settings))
	_, err := io.WriteString(w, b.String())
	return err
}

// switchWaits says what is under way of a plan, as far as the members' states show it. nil: the plan is not known.
func switchWaits(members []status.Member, p *braid.SwitchPlan) string {
	newest := uint64(0)
	for _, m := range members {
		newest = max(newest, m.Profile)
	}
	switch {
	case p == nil || newest == 0:
		return "waits for " + changeWaits(members, 0)
	case p.Seal == 0:
		return "waits for " + changeWaits(members, p.Instances)
	case newest == p.Version && len(p.Tune) > 0:
		return fmt.Sprintf("tunes %s; waits for %s", pairs(p.Tune), changeWaits(members, 0))
	case newest < p.Seal:
		return fmt.Sprintf("seals the log under profile %d; waits for %s", newest, changeWaits(members, 0))
	}
	var at []string
	for _, m := range slices.SortedStableFunc(slices.Values(members), func(a, b status.Member) int {
		return cmp.Compare(b.Profile, a.Profile)
	}) {
		name := cmp.Or(m.Name, m.ID, m.Endpoint)
		if m.ID == "" {
			at = append(at, name+" does not answer")
		} else {
			at = append(at, fmt.Sprintf("%s has profile %d (%s)", name, m.Profile, m.Protocol))
		}
	}
	return strings.Join(at, ", ") + "; waits for " + changeWaits(members, 0)
}
