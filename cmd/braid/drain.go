package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/braidlog/braid/internal/status"
	"github.com/braidlog/braid/server"
)

func init() { commands = append(commands, newDrainCommand) }

func newDrainCommand() *cobra.Command {
	var f adminFlags
	var d server.Drain
	cmd := &cobra.Command{
		Use:   "drain MEMBER",
		Short: "Make a member lead nothing, so that it can be stopped",
		Long: `drain makes a member, given by name or id, hand over everything that it leads: instances, and segments
of ISS. It prints what the member still leads, and ends when that is nothing. The member then leads nothing until
--undo, or until its process restarts. It serves clients and votes meanwhile. If no other member could lead
something, for example because the others are down, the member continues to lead it.

A member that is stopped by SIGTERM hands over by itself; drain does so long before a stop.`,
		Example: `  braid drain m2
  braid drain m2 --undo
  braid drain 2acad5ac49780409 --endpoints 10.0.0.1:2379 --user root:secret`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return usageError{err}
			}
			d.Member = args[0]
			ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
			defer cancel()
			err := f.call(ctx, func(ctx context.Context, member grpc.ClientConnInterface) error {
				return server.SetDrain(ctx, member, d)
			})
			if err != nil || d.Undo {
				return err
			}
			return f.awaitDrained(ctx, cmd.OutOrStdout(), d.Member)
		},
	}
	f.flags(cmd.Flags())
	cmd.Flags().BoolVar(&d.Undo, "undo", false, "let the member lead again")
	return cmd
}

const (
	drainLook  = 200 * time.Millisecond // between two looks at a member
	drainLooks = 3                      // in a row at a member that leads nothing, after which it is drained
)

// awaitDrained waits until a member leads nothing, and prints the instances that it leads when they change.
func (f *adminFlags) awaitDrained(ctx context.Context, w io.Writer, member string) error {
	o := status.Options{Endpoints: f.endpoints, Timeout: memberAnswer}
	o.User, o.Password, _ = strings.Cut(f.user, ":")
	var err error
	if o.TLS, err = clientTLS(&f.tls); err != nil {
		return err
	}
	pause := time.NewTicker(drainLook)
	defer pause.Stop()
	for printed, looks := "", 0; ; {
		leads, known := ledBy(status.Ask(ctx, o), member)
		now := fmt.Sprintf("%s leads %s", member, strings.Join(leads, ", "))
		switch {
		case !known:
			now, looks = fmt.Sprintf("%s does not answer", member), 0
		case len(leads) > 0:
			looks = 0
		default:
			now, looks = "", looks+1
		}
		if looks == drainLooks {
			_, err := fmt.Fprintf(w, "%s leads nothing\n", member)
			return err
		}
		if now != "" && now != printed {
			printed = now
			fmt.Fprintln(w, now)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not drained within %s: %s", f.timeout, printed)
		case <-pause.C:
		}
	}
}

// ledBy returns the instances that a member, given by name or id, leads; known is false if it did not answer.
func ledBy(members []status.Member, member string) (leads []string, known bool) {
	i := slices.IndexFunc(members, func(m status.Member) bool {
		return m.ID != "" && m.Error == "" && (m.Name == member || m.ID == member)
	})
	if i < 0 {
		return nil, false
	}
	for _, in := range members[i].Instances {
		if role, _, _ := roleText(members[i], in, func(id string) string { return id }); role == "leader" ||
			role == leadsSlots {
			leads = append(leads, fmt.Sprintf("instance %d", in.Instance))
		}
	}
	return leads, true
}
