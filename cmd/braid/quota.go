package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/braidlog/braid/server"
)

func init() { commands = append(commands, newQuotaCommand) }

func newQuotaCommand() *cobra.Command {
	var f adminFlags
	var q server.PrefixQuota
	var remove bool
	cmd := &cobra.Command{
		Use:   "quota [PREFIX]",
		Short: "Show the quotas of prefixes of keys, or change one",
		Long: `quota shows the quotas of prefixes, and what is used of them. With a PREFIX and --bytes or --keys
it sets the quota of that prefix on all members, in place of the one before; with --remove it removes
the quota.

A quota bounds the keys with a prefix as they are now, not their history: their number, and the bytes
of keys and values. A request that would use more is refused on all members with the code
ResourceExhausted, and nothing happens. Of a transaction the branch counts that would use more,
without what it deletes. What is used already may be more than a new quota: then keys can be deleted
and made smaller. All members must run, and know quotas, when one is set. quota ends when all keys with
the prefix are counted; if it ends before, the count continues, and the same call waits for it again.`,
		Example: `  braid quota
  braid quota /tenants/a/ --bytes 100000000 --keys 50000
  braid quota /tenants/a/ --remove --user root:secret`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.question = len(args) == 0
			if err := errors.Join(f.check(), checkQuota(args, &q, remove)); err != nil {
				return usageError{err}
			}
			var all []server.PrefixUsage
			err := f.call(cmd.Context(), func(ctx context.Context, member grpc.ClientConnInterface) (err error) {
				if f.question {
					all, err = server.PrefixQuotas(ctx, member)
					return err
				}
				all, err = server.SetPrefixQuota(ctx, member, q)
				return err
			})
			if err != nil {
				return err
			}
			return showQuotas(cmd.OutOrStdout(), all)
		},
	}
	f.flags(cmd.Flags())
	cmd.Flags().Int64Var(&q.Bytes, "bytes", 0, "bytes of keys and values (0: no bound)")
	cmd.Flags().Int64Var(&q.Keys, "keys", 0, "number of keys (0: no bound)")
	cmd.Flags().BoolVar(&remove, "remove", false, "remove the quota of the prefix")
	return cmd
}

// checkQuota completes the quota that the arguments name.
func checkQuota(args []string, q *server.PrefixQuota, remove bool) error {
	bounds := q.Bytes != 0 || q.Keys != 0
	switch {
	case len(args) == 0 && (bounds || remove):
		return errors.New("the prefix is missing")
	case len(args) == 0:
		return nil
	case bounds == remove:
		return errors.New("a quota has --bytes, --keys or both, or --remove")
	}
	q.Prefix = args[0]
	return q.Check()
}

// showQuotas writes a table.
func showQuotas(w io.Writer, all []server.PrefixUsage) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "there are no quotas of prefixes")
		return err
	}
	bound := func(used, most int64) string {
		if most == 0 {
			return fmt.Sprintf("%d of any", used)
		}
		return fmt.Sprintf("%d of %d", used, most)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PREFIX\tBYTES\tKEYS")
	for _, u := range all {
		fmt.Fprintf(table, "%s\t%s\t%s",
			strconv.Quote(u.Prefix), bound(u.UsedBytes, u.Bytes), bound(u.UsedKeys, u.Keys))
		if u.Counting {
			fmt.Fprint(table, "\tcounting")
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}
