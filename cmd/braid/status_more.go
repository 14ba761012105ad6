package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/braidlog/braid/internal/status"
)

// printWhy prints why members do not serve all requests, and what to do about alarms, once each.
func printWhy(w io.Writer, members []status.Member) {
	var said []string
	say := func(text string) {
		if !slices.Contains(said, text) {
			said = append(said, text)
			fmt.Fprintln(w, text)
		}
	}
	for _, m := range members {
		if m.Why != "" {
			say(fmt.Sprintf("\n%s answers %s: %s", orDash(m.Name), answers(m.Serving), m.Why))
		}
		for _, r := range m.Remedies {
			say(r.Alarm + ": " + r.Remedy)
		}
	}
}

// answers is which requests a member answers.
func answers(serving string) string {
	switch serving {
	case "reads":
		return "reads only"
	case "none":
		return "no requests"
	}
	return serving
}

// printRates prints what members did in the last seconds.
func printRates(w io.Writer, members []status.Member) {
	if !slices.ContainsFunc(members, func(m status.Member) bool { return m.Rates != nil || m.Braid != "" }) {
		return
	}
	fmt.Fprintln(w, "\nMEMBER\tVERSION\tFORMAT\tPROTOCOL\tWRITES/S\tP99\tREADS/S\tP99\tFAILED/S"+
		"\tSENT/S\tRECEIVED/S\tCPU\tMEMORY\tQUOTA")
	for _, m := range members {
		if m.ID == "" {
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t", orDash(m.Name), orDash(m.Braid), formatText(m), orDash(m.Protocol))
		if r := m.Rates; r != nil {
			fmt.Fprintf(w, "%.1f\t%s\t%.1f\t%s\t%.1f\t%s\t%s\t%.2f\t%s\t", r.Writes, latency(r.WriteP99), r.Reads,
				latency(r.ReadP99), r.Failed, status.Bytes(r.Sent), status.Bytes(r.Received), r.CPU,
				status.Bytes(r.Memory))
		} else {
			fmt.Fprint(w, "-\t-\t-\t-\t-\t-\t-\t-\t-\t")
		}
		quota := "-"
		if m.QuotaBytes > 0 {
			quota = fmt.Sprintf("%.0f%% of %s", 100*float64(m.DBBytes)/float64(m.QuotaBytes),
				status.Bytes(float64(m.QuotaBytes)))
		}
		fmt.Fprintln(w, quota)
	}
}

// formatText is the format in which a member writes, and the newest one that it knows if that is another.
func formatText(m status.Member) string {
	switch {
	case m.Format == 0:
		return "-"
	case m.KnownFormat > m.Format:
		return fmt.Sprintf("%d (knows %d)", m.Format, m.KnownFormat)
	}
	return fmt.Sprint(m.Format)
}

// latency is a time in milliseconds; 0: there is none.
func latency(ms float64) string {
	if ms == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", ms)
}

// leadsSlots is the role of a member that leads slots of an epoch.
const leadsSlots = "leads slots"

// roleText is a member's role in an instance, who leads, and by which term, in the words of the protocol: where
// members lead slots of epochs there is no one leader, and a term may be a ballot.
func roleText(m status.Member, i status.Instance, names func(id string) string) (role, leader, term string) {
	role, leader, term = i.Role, names(i.Leader), fmt.Sprint(i.Term)
	if i.Ballot != "" {
		term = "ballot " + i.Ballot
	}
	e := i.Epoch
	if e == nil {
		return role, leader, term
	}
	leads := slices.ContainsFunc(e.Segments, func(s status.Segment) bool { return s.Leader == m.ID })
	switch {
	case leads:
		role = leadsSlots
	case slices.Contains(e.Banned, m.ID):
		role = "banned"
	}
	return role, fmt.Sprintf("%d members", len(e.Segments)), fmt.Sprintf("epoch %d", e.Number)
}

// showEvents prints the last events of all members.
func showEvents(ctx context.Context, w io.Writer, o status.Options, asJSON bool) error {
	events, err := status.Events(ctx, o)
	if err != nil {
		return err
	}
	if asJSON {
		out := json.NewEncoder(w)
		for i := range events {
			if err := out.Encode(&events[i]); err != nil {
				return err
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "TIME\tMEMBER\tLEVEL\tEVENT\tWHAT HAPPENED")
	for _, e := range events {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", e.At.Format(time.RFC3339Nano), e.Member, e.Level, e.Kind, e.Text)
	}
	return t.Flush()
}
