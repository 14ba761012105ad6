package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/braidlog/braid/internal/status"
	"github.com/braidlog/braid/server"
)

func init() { commands = append(commands, newAdviseCommand) }

func newAdviseCommand() *cobra.Command {
	f, asJSON := adminFlags{question: true}, false
	cmd := &cobra.Command{
		Use:   "advise",
		Short: "Show which protocol, settings and leader would fit the load",
		Long: `advise shows what the leader makes of today's load, and changes nothing.

The first table has what each member measured in the last second: the commands that clients asked it
for, how many of them need no result (blind) and how much of their bytes is large values, their mean
time, how many were in progress at a time; the shares of the second in which its event loops, the
apply loop, the log's disk and all cores were busy; what it sent, what waited to be sent, and the
committed entries that it had not applied. The second one has the shortest round trips.

The third table has the throughput and the mean time of a command that the leader expects under each
profile, the active one first: if clients keep as many commands in progress as now. LIMIT is what
allows no more. EXCLUDED says why a profile is not possible, or not allowed now.

Below it is the change that the leader wishes for, if one is expected to gain enough for long enough.
With "braid tune fit=on" the leader makes it, measures, and takes it back if it did not gain enough;
what was taken back is listed, with the time from which it may be tried again. With "fit=off" there
is no advice.

The leader decides once a second. In the seconds after an election there is no advice: the exit code
is 1 then.`,
		Example: `  braid advise
  braid advise --endpoints 10.0.0.1:2379 --json
  braid advise --endpoints https://10.0.0.1:2379 --cacert ca.crt --user root:secret`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return usageError{err}
			}
			var advice server.Advised
			err := f.call(cmd.Context(), func(ctx context.Context, member grpc.ClientConnInterface) (err error) {
				advice, err = server.Advise(ctx, member)
				return err
			})
			switch {
			case err != nil:
				return err
			case asJSON:
				return json.NewEncoder(cmd.OutOrStdout()).Encode(&advice)
			}
			return printAdvice(cmd.OutOrStdout(), &advice)
		},
	}
	f.flags(cmd.Flags())
	cmd.Flags().Lookup("timeout").Usage = "time limit of the answer"
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printAdvice prints an advice, with the figures on which it rests.
func printAdvice(w io.Writer, a *server.Advised) error {
	names := func(id string) string {
		if name := a.Names[id]; name != "" {
			return name
		}
		return orDash(id)
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "leader %s decided at %s, under profile %d, fit=%s\n", names(a.By), a.At.Format(time.DateTime),
		a.Profile, a.Mode)
	printLoad(t, a, names)
	printTrips(t, a, names)
	printCosts(t, a, names)
	printWish(t, a, names)
	return t.Flush()
}

// printLoad prints what each member measured.
func printLoad(w io.Writer, a *server.Advised, names func(id string) string) {
	fmt.Fprintln(w, "\nMEMBER\tCOMMANDS/S\tBYTES/S\tBLIND\tLARGE\tLATENCY\tIN PROGRESS\tLOOPS\tAPPLY\tDISK\tCPU\t"+
		"SENT/S\tQUEUED\tUNAPPLIED")
	silent := maps.Clone(a.Names)
	for i := range a.Members {
		m := &a.Members[i]
		delete(silent, m.ID)
		var loops []string
		for _, share := range m.Loops {
			loops = append(loops, percent(share))
		}
		sent, queued := 0.0, 0.0
		for _, l := range m.Links {
			sent, queued = sent+l.Bytes, queued+float64(l.Queued)
		}
		fmt.Fprintf(w, "%s\t%.0f\t%s\t%s\t%s\t%s\t%.1f\t%s\t%s\t%s\t%s\t%s\t%s\t%d\n", names(m.ID), m.Commands,
			status.Bytes(m.Bytes), percent(m.Blind), percent(m.Large), seconds(m.Latency), m.Waiting,
			orDash(strings.Join(loops, " ")), percent(m.Apply), percent(m.Disk), percent(m.CPU),
			status.Bytes(sent), status.Bytes(queued), m.Unapplied)
	}
	for _, id := range slices.Sorted(maps.Keys(silent)) {
		fmt.Fprintf(w, "%s\tno report\n", names(id))
	}
}

// printTrips prints a matrix of the round trips from each member to each.
func printTrips(w io.Writer, a *server.Advised, names func(id string) string) {
	var all []string
	trips := map[[2]string]float64{}
	for i := range a.Members {
		m := &a.Members[i]
		all = append(all, m.ID)
		for _, l := range m.Links {
			all = append(all, l.To)
			trips[[2]string{m.ID, l.To}] = l.Trip
		}
	}
	slices.SortFunc(all, func(x, y string) int { return strings.Compare(names(x)+" "+x, names(y)+" "+y) })
	if all = slices.Compact(all); len(trips) == 0 {
		return
	}
	fmt.Fprint(w, "\nROUND TRIP")
	for _, to := range all {
		fmt.Fprint(w, "\t", names(to))
	}
	for i := range a.Members {
		from := a.Members[i].ID
		fmt.Fprint(w, "\n", names(from))
		for _, to := range all {
			fmt.Fprint(w, "\t", seconds(trips[[2]string{from, to}]))
		}
	}
	fmt.Fprintln(w)
}

// printCosts prints what is expected of each profile.
func printCosts(w io.Writer, a *server.Advised, names func(id string) string) {
	fmt.Fprintln(w, "\nPROTOCOL\tSETTINGS\tLEADER\tTHROUGHPUT\tLATENCY\tGAIN\tLIMIT\tEXCLUDED")
	for i := range a.Costs {
		c := &a.Costs[i]
		protocol, throughput, gain := c.Protocol, fmt.Sprintf("%.0f/s", c.Throughput), "-"
		if i == 0 {
			protocol += " (active)"
		}
		if c.Gain > 0 {
			gain = fmt.Sprintf("%.2f×", c.Gain)
		}
		if c.Excluded != "" {
			throughput = "-"
		}
		settings := strings.TrimPrefix(profileText("", c.Settings, "", names), " ")
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", protocol, orDash(settings), names(c.Leader),
			throughput, seconds(c.Latency), gain, orDash(c.Limit), orDash(c.Excluded))
	}
}

// printWish prints the wish or why there is none, and what is not tried again yet.
func printWish(w io.Writer, a *server.Advised, names func(id string) string) {
	fmt.Fprintln(w)
	if a.Wish == nil {
		fmt.Fprintln(w, noWish(a, names))
	} else {
		is := a.Wish
		wish := status.Wish{Protocol: is.Protocol, Settings: is.Settings, Leader: is.Leader, Gain: is.Gain,
			Reason: is.Reason, TakesBack: is.TakesBack, Restores: is.Restores}
		fmt.Fprintf(w, "wish: %s: %s\n", wishText(&wish, names), wish.Reason)
		switch {
		case a.Waits != "":
			fmt.Fprintf(w, "it waits: %s\n", a.Waits)
		case a.Mode == "on":
			fmt.Fprintln(w, "the leader makes the change")
		}
		fmt.Fprintf(w, "by hand: %s\n", byHand(a))
	}
	for _, v := range a.Avoids {
		fmt.Fprintf(w, "not before %s: %s, which was taken back\n", v.Until.Format(time.DateTime),
			profileText(v.Protocol, v.Settings, v.Leader, names))
	}
}

// byHand is the command that makes the wished change.
func byHand(a *server.Advised) string {
	w := a.Wish
	if len(a.Costs) > 0 && w.Leader != "" && w.Protocol == a.Costs[0].Protocol &&
		(len(w.Settings) == 0 || maps.Equal(w.Settings, a.Costs[0].Settings)) {
		return "braid ctl move-leader " + w.Leader
	}
	return "braid switch " + profileText(w.Protocol, w.Settings, "", nil)
}

// noWish says why there is no wish.
func noWish(a *server.Advised, names func(id string) string) string {
	var best *server.AdvisedCost
	for i := range a.Costs {
		if c := &a.Costs[i]; i > 0 && c.Excluded == "" && (best == nil || c.Throughput > best.Throughput) {
			best = c
		}
	}
	if best == nil || best.Gain == 0 {
		return "no wish: nothing can be compared with the active profile now, see EXCLUDED"
	}
	to := profileText(best.Protocol, best.Settings, best.Leader, names)
	if best.Gain <= 1 {
		return "no wish: no change would gain anything"
	}
	return fmt.Sprintf("no wish: the best change, %s, would gain %s; that is not enough, or not for long enough yet",
		to, factor(best.Gain))
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// seconds is a time, for people; 0: it is not known.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d <= 0:
		return "-"
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
