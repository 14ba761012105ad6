package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/server"
)

func init() { commands = append(commands, newReshapeCommand) }

func newReshapeCommand() *cobra.Command {
	var f adminFlags
	instances := 0
	cmd := &cobra.Command{
		Use:   "reshape",
		Short: "Change the number of instances of a running cluster",
		Long: `reshape changes the number of instances from which a running cluster with --protocol niagara
merges its log, without a pause. The cluster records it; members' --instances is only for new
clusters. It returns when the change is active on the member that got the request.`,
		Example: `  braid reshape --instances 8
  braid reshape --endpoints 10.0.0.1:2379 --instances 2 --user root:secret`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if instances < 1 || instances > braid.MaxInstances {
				return usagef("--instances %d: it is 1 to %d", instances, braid.MaxInstances)
			}
			if err := f.check(); err != nil {
				return usageError{err}
			}
			err := f.waiting(cmd, instances, func() error {
				return f.call(cmd.Context(), func(ctx context.Context, member grpc.ClientConnInterface) error {
					return server.Reshape(ctx, member, instances)
				})
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "the log is merged from %d instances\n", instances)
			return err
		},
	}
	f.flags(cmd.Flags())
	cmd.Flags().IntVar(&instances, "instances", 0, fmt.Sprintf("number of instances, 1 to %d", braid.MaxInstances))
	return cmd
}
