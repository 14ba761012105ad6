package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/braidlog/braid/server"
)

func init() { commands = append(commands, newReplaceCommand) }

func newReplaceCommand() *cobra.Command {
	var f adminFlags
	var r server.Replacement
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "replace MEMBER",
		Short: "Replace a member that is down for good",
		Long: `replace removes a member, given by name or id, that is down for good: its machine or its disk is lost.
In the same change it adds a new member in its place, at the peer URLs of the former one or at
others, and prints what starts the new member with an empty data directory. That one receives
the data and becomes a voter by itself. The cluster serves meanwhile, if it served before.

A member that answers is not replaced: stop it first. The data directory of a replaced member is of
no use any more; a new member never starts from a copy of it.`,
		Example: `  braid replace m3                                       # same address, new disk
  braid replace m3 --peer-urls http://10.0.0.9:2380      # another machine
  braid replace 2acad5ac49780409 --endpoints 10.0.0.1:2379 --user root:secret`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return usageError{err}
			}
			r.Member = args[0]
			var done server.Replaced
			err := f.call(cmd.Context(), func(ctx context.Context, member grpc.ClientConnInterface) (err error) {
				done, err = server.Replace(ctx, member, r)
				return err
			})
			switch {
			case err != nil:
				return err
			case asJSON:
				return json.NewEncoder(cmd.OutOrStdout()).Encode(done)
			}
			return showReplaced(cmd.OutOrStdout(), &done)
		},
	}
	f.flags(cmd.Flags())
	cmd.Flags().StringSliceVar(&r.PeerURLs, "peer-urls", nil,
		"where the other members reach the new one (default: as the former one)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the outcome as JSON")
	return cmd
}

// showReplaced prints the outcome and, as "member add" does, what the new member needs.
func showReplaced(w io.Writer, r *server.Replaced) error {
	name := r.Name
	if name == "" {
		name = r.Added // the former one never started
	}
	cluster := r.Others
	for _, url := range r.PeerURLs {
		cluster = append(cluster, name+"="+url)
	}
	_, err := fmt.Fprintf(w, `member %s (%s) is removed, and member %s is added in its place.
Start it with an empty data directory, with its own client URLs, and with

ETCD_NAME=%q
ETCD_INITIAL_CLUSTER=%q
ETCD_INITIAL_ADVERTISE_PEER_URLS=%q
ETCD_INITIAL_CLUSTER_STATE="existing"
`, name, r.Removed, r.Added, name, strings.Join(cluster, ","), strings.Join(r.PeerURLs, ","))
	return err
}
