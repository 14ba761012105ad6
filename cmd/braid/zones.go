package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/server"
)

func init() { commands = append(commands, newZonesCommand) }

func newZonesCommand() *cobra.Command {
	var f adminFlags
	cmd := &cobra.Command{
		Use:   "zones MEMBER=ZONE…",
		Short: "Change the zones of members of a running cluster",
		Long: `zones changes the zones of members, given by name or id, all in one change. A cluster with
quorums by zones, whose voters have none, takes them only so: every voter needs one. A zone is
changed to another one, and never cleared. It returns when the change is active on the member that
got the request. "braid status" shows the zones.

A member that starts with --zone proposes that zone, so give it the new one.`,
		Example: `  braid zones m1=eu-west-1 m2=eu-west-2 m3=us-east-1
  braid zones --endpoints 10.0.0.1:2379 --user root:secret m1=eu-west-2`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			zones, err := parseZones(args)
			if err == nil {
				err = f.check()
			}
			if err != nil {
				return usageError{err}
			}
			return f.call(cmd.Context(), func(ctx context.Context, member grpc.ClientConnInterface) error {
				return server.SetZones(ctx, member, zones)
			})
		},
	}
	f.flags(cmd.Flags())
	return cmd
}

// parseZones parses arguments of the form MEMBER=ZONE.
func parseZones(args []string) (map[string]string, error) {
	zones, err := parsePairs(args, "MEMBER=ZONE")
	for name, zone := range zones {
		arg, wrong := name+"="+zone, protocol.CheckZone(zone)
		switch {
		case zone == "":
			return nil, fmt.Errorf("%q is not MEMBER=ZONE", arg)
		case wrong != nil:
			return nil, fmt.Errorf("%q: %w", arg, wrong)
		}
	}
	return zones, err
}
